// The user's own script in the user's own image, which has Python and numpy and nothing of ours
// (tests/cluster/kind/python_image). The namespaces enforce the profile `restricted`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 1536;
constexpr char kImage[] = "hetero-test-python:1";

// The stream of the script jobs as a job of the C++ trainer, which says what its digest is.
json ModelJob() {
  json job = SlowJob("model");
  job["spec"]["dataset"]["samples"] = kSamples;
  return job;
}

json ScriptJob(const JobNamespace& space, const std::string& name,
               std::vector<std::string> arguments) {
  std::filesystem::copy_file(testing::SourceDir() + "/tests/integration/e2e/scripts/consume.py",
                             space.folder() + "/consume.py");
  json job = ModelJob();
  job["metadata"]["name"] = name;
  MountData(job);
  json& training = job["spec"]["training"];
  for (const char* decided : {"model", "optimizer"}) training.erase(decided);
  training["script"]["command"] = {"python3", "consume.py", "/data"};
  for (std::string& argument : arguments) {
    training["script"]["command"].push_back(std::move(argument));
  }
  training["script"]["workingDirectory"] = "/data";
  training["checkpoint"] = {{"uri", "file:///data/checkpoints"}, {"everySteps", 4}};
  RuntimeOf(job, "gpu")["image"] = kImage;
  RuntimeOf(job, "gpu")["resources"]["requests"]["memory"] = "128Mi";
  return job;
}

// What the scripts wrote down; of a step that was replayed, the last time.
std::map<std::pair<int, int64_t>, json> Journal(const JobNamespace& space, int ranks) {
  std::map<std::pair<int, int64_t>, json> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(space.folder() + "/journal-" + std::to_string(rank) + ".jsonl");
    for (std::string line; std::getline(file, line);) {
      const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (entry.is_object()) steps[{rank, entry["step"]}] = entry;  // the last line may be half
    }
  }
  return steps;
}

void ExpectEachSampleOnceAnEpoch(const JobNamespace& space, int ranks, int epochs) {
  std::map<int64_t, std::multiset<int64_t>> seen;
  for (const auto& [place, entry] : Journal(space, ranks)) {
    for (const int64_t id : entry["ids"]) seen[entry["epoch"]].insert(id);
  }
  ASSERT_EQ(seen.size(), static_cast<size_t>(epochs));
  for (const auto& [epoch, ids] : seen) {
    EXPECT_EQ(ids.size(), static_cast<size_t>(kSamples)) << epoch;
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), static_cast<size_t>(kSamples))
        << epoch;
  }
}

// One script is killed, a pod is deleted, an agent is killed: the stream is that of the C++ job
// which nothing disturbed, and each sample was there once.
TEST(Script, HasTheUndisturbedStreamWhateverDies) {
  Installation::Get();
  if (SharedFolder().empty()) GTEST_SKIP() << "this cluster's nodes share no folder";
  const std::string digest = LocalReport(ModelJob()).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  JobNamespace space("script");
  const JobUnderTest job(space.name(), ScriptJob(space, "script", {"--kill", "9:1"}));
  ASSERT_TRUE(WaitFor(
      "the script that was killed costs a restart",
      [&] { return job.Status().value("restarts", 0) == 1; }, seconds(120),
      [&] { return job.Describe() + Logs(job, "gpu", 0) + Logs(job, "gpu", 1); }));
  EXPECT_EQ(job.Status().value("scriptRestarts", 0), 1);
  EXPECT_THAT(job.Status()["firstFailure"].value("message", ""), HasSubstr("SIGKILL"));
  ASSERT_TRUE(WaitStep(job, 14));
  EXPECT_THAT(Logs(job, "gpu", 0), HasSubstr("below /tmp"));

  const std::string deleted = job.PodUid("gpu", 0);
  ControlPlane::Get().MustKubectl(
      {"delete", "pod", job.PodKey("gpu", 0).name, "-n", space.name(), "--wait=false"});
  ASSERT_TRUE(WaitReplaced(job, "gpu", 0, deleted));
  ASSERT_TRUE(WaitStep(job, StepOf(job) + 4));
  EXPECT_EQ(job.Status().value("restarts", 0), 1) << "a deletion is nobody's failure";

  if (Nodes::reachable()) {
    const std::string killed = job.PodUid("gpu", 1);
    Nodes::KillRuntime(space.name(), job.PodKey("gpu", 1).name);
    ASSERT_TRUE(WaitReplaced(job, "gpu", 1, killed));
  }
  ExpectSucceededWithDigest(job, digest);
  EXPECT_EQ(job.Status().value("restarts", 0), Nodes::reachable() ? 2 : 1) << job.Describe();
  ExpectEachSampleOnceAnEpoch(space, 2, 2);
}

// Functions of Python on the CPU workers, in the user's image: the stream is that of this machine,
// whatever dies.
TEST(Script, PythonOperatorsMakeTheSameStreamOnNodes) {
  Installation::Get();
  if (SharedFolder().empty()) GTEST_SKIP() << "this cluster's nodes share no folder";
  JobNamespace space("operators");
  std::filesystem::copy_file(testing::SourceDir() + "/tests/integration/e2e/scripts/augment.py",
                             space.folder() + "/augment.py");
  const auto with_operator = [](json job, const std::string& path) {
    job["spec"]["pipeline"] =
        json::array({{{"op", "HorizontalFlip"}},
                     {{"op", "Python"},
                      {"path", path},
                      {"module", "augment"},
                      {"function", "transform"},
                      {"outputs", {{"image", {{"shape", {16, 16, 3}}, {"type", "Uint8"}}}}}},
                     {{"op", "Normalize"}}});
    return job;
  };
  const std::string path = std::getenv("PATH");
  setenv("PATH", (testing::SourceDir() + "/.deps/python/bin:" + path).c_str(),
         1);  // which has numpy
  const std::string digest =
      LocalReport(with_operator(ModelJob(), space.folder())).value("streamDigest", "");
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(digest.empty());

  json manifest = with_operator(ScriptJob(space, "operators", {}), "/data");
  RuntimeOf(manifest, "cpu")["image"] = kImage;
  RuntimeOf(manifest, "cpu")["resources"]["requests"]["memory"] = "128Mi";
  const JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(WaitStep(job, 8)) << Logs(job, "cpu", 0);
  if (Nodes::reachable()) {
    const std::string killed = job.PodUid("cpu", 0);
    Nodes::KillRuntime(space.name(), job.PodKey("cpu", 0).name);
    ASSERT_TRUE(WaitReplaced(job, "cpu", 0, killed));
  }
  const std::string deleted = job.PodUid("cpu", 1);
  ControlPlane::Get().MustKubectl(
      {"delete", "pod", job.PodKey("cpu", 1).name, "-n", space.name(), "--wait=false"});
  ASSERT_TRUE(WaitReplaced(job, "cpu", 1, deleted));
  ExpectSucceededWithDigest(job, digest);
  ExpectEachSampleOnceAnEpoch(space, 2, 2);
}

// The same exception at the same step comes a third time: the job ends, and says so where people
// look.
TEST(Script, ThatFailsForGoodShowsItsTraceback) {
  Installation::Get();
  if (SharedFolder().empty()) GTEST_SKIP() << "this cluster's nodes share no folder";
  JobNamespace space("traceback");
  json manifest = ScriptJob(space, "traceback", {"--fail", "2"});
  manifest["spec"]["runPolicy"]["maxRestarts"] = 10;
  const JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed", seconds(180)));
  EXPECT_EQ(job.Reason("Failed"), "TrainingFailed");
  const std::string described =
      ControlPlane::Get().MustKubectl({"describe", "htj", job.name(), "-n", space.name()});
  for (const char* words : {"Traceback (most recent call last)", "consume.py\", line ",
                            "ValueError: nothing fits at step 2", "three times"}) {
    EXPECT_THAT(described, HasSubstr(words));
  }
  EXPECT_EQ(job.Status().value("restarts", 0), 2) << job.Describe();
}

}  // namespace
}  // namespace hetero::testing
