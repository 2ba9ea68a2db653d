// Jobs that cannot work: the status says which pod, why, and in whose words; budgets and deadlines
// act, and nothing stays. All wait most of the time, so they are applied together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

json NoImage() {
  json job = SlowJob("no-image");
  RuntimeOf(job, "cpu")["image"] = "hetero-no-such-image:0.0.0";
  job["spec"]["runPolicy"]["startupDeadlineSeconds"] = 60;
  return job;
}

json TooBig() {
  json job = SlowJob("too-big");
  RuntimeOf(job, "gpu")["resources"]["requests"]["cpu"] = "1000";
  job["spec"]["runPolicy"]["startupDeadlineSeconds"] = 60;
  return job;
}

json Crashing() {
  json job = SlowJob("crash");
  RuntimeOf(job, "gpu")["args"] = {"--no-such-flag"};
  job["spec"]["runPolicy"]["maxRestarts"] = 2;
  return job;
}

// One batch is larger than its CPU workers may be: many small pictures, since steps of few large
// ones took 11 GB of the machine from each trainer, which has no limit.
json OutOfMemory() {
  json job = SlowJob("oom");
  job["spec"]["dataset"]["samples"] = 480'000;
  job["spec"]["pipeline"] = json::array({{{"op", "HorizontalFlip"}}, {{"op", "Normalize"}}});
  job["spec"]["training"]["batchSizePerWorker"] = 240'000;  // 184 MB
  job["spec"]["runPolicy"]["maxRestarts"] = 0;
  RuntimeOf(job, "cpu")["resources"]["limits"]["memory"] = "128Mi";
  return job;
}

json TooLong() {
  json job = SlowJob("too-long");
  job["spec"]["training"]["epochs"] = 1000;
  job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 80;
  job["spec"]["output"]["uri"] = "file:///data/output";
  if (!SharedFolder().empty()) MountData(job);
  return job;
}

// The chart's own trainer image is for the CPU, whichever registry it comes from.
json NoCuda() {
  json job = SlowJob("no-cuda");
  RoleOf(job, "gpu")["gpusPerReplica"] = 1;
  return job;
}

// An image that the job names itself may have CUDA; here no node has a GPU.
json OwnImage() {
  json job = SlowJob("own-image");
  RoleOf(job, "gpu")["gpusPerReplica"] = 1;
  RuntimeOf(job, "gpu")["image"] = "registry.example/trainer-cuda:1";
  job["spec"]["runPolicy"]["startupDeadlineSeconds"] = 600;
  return job;
}

class Trouble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Installation::Get();
    jobs_ = new Jobs;
    for (const json& manifest :
         {NoImage(), TooBig(), Crashing(), OutOfMemory(), TooLong(), NoCuda(), OwnImage()}) {
      const std::string name = manifest["metadata"]["name"];
      const JobNamespace& space = jobs_->spaces.emplace_back(name);
      jobs_->folders.emplace(name, space.folder());
      jobs_->jobs.emplace(name, JobUnderTest(space.name(), manifest));
    }
  }
  static void TearDownTestSuite() { delete jobs_; }

  static const JobUnderTest& Job(const std::string& name) { return jobs_->jobs.at(name); }
  // What its pods see at /data.
  static const std::string& Folder(const std::string& name) { return jobs_->folders.at(name); }

  static void WaitReason(const JobUnderTest& job, const std::string& condition,
                         const std::string& reason) {
    ASSERT_TRUE(WaitFor(
        job.name() + ": " + condition + " says " + reason,
        [&] { return job.Reason(condition) == reason || job.Is("Failed"); }, seconds(120),
        [&] { return job.Describe(); }));
    EXPECT_EQ(job.Reason(condition), reason) << job.Describe();
  }

  static void ExpectFailed(const JobUnderTest& job, const std::string& reason) {
    ASSERT_TRUE(job.WaitIs("Failed", seconds(240)));
    EXPECT_EQ(job.Reason("Failed"), reason) << job.Describe();
    EXPECT_FALSE(job.Is("Succeeded"));
    job.WaitGone(seconds(120));
  }

 private:
  struct Jobs {
    std::deque<JobNamespace> spaces;
    std::map<std::string, std::string> folders;
    std::map<std::string, JobUnderTest> jobs;
  };
  static Jobs* jobs_;
};
Trouble::Jobs* Trouble::jobs_ = nullptr;

TEST_F(Trouble, AnImageThatDoesNotExist) {
  const JobUnderTest& job = Job("no-image");
  ASSERT_NO_FATAL_FAILURE(WaitReason(job, "Registered", "ImagePullFailed"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("no-image-cpu-"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("hetero-no-such-image:0.0.0"));
  ExpectFailed(job, "StartupDeadlineExceeded");
  EXPECT_THAT(job.Message("Failed"), HasSubstr("no-image-cpu-"));
}

TEST_F(Trouble, ARequestThatNoNodeHas) {
  const JobUnderTest& job = Job("too-big");
  ASSERT_NO_FATAL_FAILURE(WaitReason(job, "Registered", "Unschedulable"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("too-big-gpu-"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("Insufficient cpu"));
  ExpectFailed(job, "StartupDeadlineExceeded");
}

TEST_F(Trouble, ATrainerThatCrashesAtOnceUsesUpTheBudget) {
  const JobUnderTest& job = Job("crash");
  ExpectFailed(job, "MaxRestartsExceeded");
  const json failure = job.Status().value("firstFailure", json::object());
  EXPECT_THAT(failure.value("pod", ""), HasSubstr("crash-gpu-"));
  EXPECT_NE(failure.value("exitCode", 0), 0) << failure;
  EXPECT_THAT(failure.value("message", ""), HasSubstr("--no-such-flag"));
  EXPECT_FALSE(failure.value("node", "").empty()) << failure;
}

TEST_F(Trouble, GpusOfTheChartsTrainerImageAreRefusedAtOnceByName) {
  const JobUnderTest& job = Job("no-cuda");
  ExpectFailed(job, "InvalidSpec");
  EXPECT_THAT(job.Message("Failed"), HasSubstr("spec.roles[2].gpusPerReplica: 1 asks for GPUs"));
  EXPECT_THAT(job.Message("Failed"), HasSubstr("hetero-trainer:"));
  EXPECT_THAT(job.Message("Failed"), HasSubstr("set it to 0 to train on the CPU"));
  EXPECT_THAT(job.Message("Failed"), HasSubstr("name an image with CUDA in the role's template"));
  EXPECT_FALSE(job.Status().contains("firstFailure")) << "no pod was made that could fail";
}

TEST_F(Trouble, GpusOfAnImageThatTheJobNamesAreNotRefused) {
  const JobUnderTest& job = Job("own-image");
  ASSERT_NO_FATAL_FAILURE(WaitReason(job, "Registered", "Unschedulable"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("own-image-gpu-"));
  EXPECT_THAT(job.Message("Registered"), HasSubstr("Insufficient nvidia.com/gpu"));
}

TEST_F(Trouble, ACpuWorkerOutOfMemory) {
  const JobUnderTest& job = Job("oom");
  ExpectFailed(job, "MaxRestartsExceeded");
  const json failure = job.Status().value("firstFailure", json::object());
  EXPECT_THAT(failure.value("pod", ""), HasSubstr("oom-cpu-"));
  EXPECT_EQ(failure.value("reason", ""), "OOMKilled") << failure;
}

// The operator ends it, and its head is told why before the pods go.
TEST_F(Trouble, AJobThatTakesTooLong) {
  const JobUnderTest& job = Job("too-long");
  ExpectFailed(job, "DeadlineExceeded");
  EXPECT_THAT(job.Message("Failed"),
              HasSubstr("runPolicy.activeDeadlineSeconds: the job has run for 80 s"));
  const json status = job.Status(), result = status.value("result", json::object());
  EXPECT_GT(result.value("steps", 0), 0) << status.dump(1);
  EXPECT_GE(result.value("steps", 0), StepOf(job)) << status.dump(1);
  EXPECT_GT(result.value("samplesPerSecond", 0.0), 0) << status.dump(1);
  EXPECT_EQ(result.value("streamDigest", "").size(), 32u) << status.dump(1);
  if (SharedFolder().empty()) return;
  EXPECT_EQ(result.value("reportURI", ""), "file:///data/output/report.json") << status.dump(1);
  const std::string file = Folder("too-long") + "/output/report.json";
  ASSERT_TRUE(std::filesystem::exists(file)) << job.Describe();
  const json report = json::parse(ReadFileOrDie(file));
  EXPECT_EQ(report["state"], "Failed");
  EXPECT_THAT(report.value("message", ""),
              HasSubstr("runPolicy.activeDeadlineSeconds: the job has run for 80 s"));
  EXPECT_EQ(report["steps"], result["steps"]);
  EXPECT_EQ(report["streamDigest"], result["streamDigest"]);
  EXPECT_GE(report.value("wallSeconds", 0.0), 60);
  EXPECT_TRUE(std::filesystem::exists(Folder("too-long") + "/output/report.html"));
}

}  // namespace
}  // namespace hetero::testing
