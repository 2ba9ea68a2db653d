// The README's quick start on real nodes: from `kubectl apply` until nothing but the result is
// left.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

class Stopwatch {
 public:
  void Lap(const char* phase) {
    const auto now = std::chrono::steady_clock::now();
    std::printf("%-14s %6.1f s\n", phase, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

json Example(const std::string& name) {
  return json::parse(
      ControlPlane::Get().MustKubectl({"create", "--dry-run=client", "-o", "json", "-f",
                                       testing::SourceDir() + "/examples/" + name}));
}

// The report is on a volume that only pods see: a reader pod brings it, and is gone then.
void ExpectReportFetched(const JobUnderTest& job, const std::string& name_space,
                         const std::string& digest) {
  const auto hetero = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {testing::BinDir() + "/kubectl-hetero", "report", job.name(),
                                        "-n", name_space};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(command, "", seconds(180));
  };
  const CommandResult object = hetero({"-o", "json"});
  ASSERT_EQ(object.exit_code, 0) << object.output;
  const json report = json::parse(object.output, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << object.output;
  EXPECT_EQ(report.value("streamDigest", ""), digest);
  TemporaryFolder folder;
  const CommandResult saved = hetero({"--save", folder.path()});
  EXPECT_EQ(saved.exit_code, 0) << saved.output;
  EXPECT_EQ(json::parse(ReadFileOrDie(folder / "report.json")), report);
  EXPECT_EQ(ReadFileOrDie(folder / "report.html").rfind("<!DOCTYPE html>", 0), 0u);
  WaitFor("no reader pod is left", [&] {
    return ControlPlane::Get()
        .Objects(kube::kPods, name_space, "app.kubernetes.io/name=hetero-report-reader")
        .empty();
  });
}

// The README's commands, on any cluster: no volume is needed.
TEST(Quickstart, OfTheReadmeHasTheLocalRunsResult) {
  Installation::Get();
  JobNamespace space("readme");
  const json manifest = Example("quickstart-kubernetes.yaml");
  const json local = LocalReport(manifest);
  ASSERT_TRUE(local.is_object());
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded", seconds(300)));
  EXPECT_EQ(job.Status()["result"]["streamDigest"], local["streamDigest"]);
  const CommandResult report =
      RunCommand({testing::BinDir() + "/kubectl-hetero", "report", job.name(), "-n", space.name()},
                 "", seconds(60));
  EXPECT_EQ(report.exit_code, 0) << report.output;
  EXPECT_NE(report.output.find("\n    accuracy "), std::string::npos) << report.output;
  EXPECT_TRUE(job.WaitGone(seconds(120)));
}

TEST(Quickstart, FromApplyToGone) {
  Installation::Get();
  if (SharedFolder().empty())
    GTEST_SKIP() << "this cluster's nodes share no folder with this machine";
  JobNamespace space("quickstart");
  // Pods see the volume at /data, and the manifest names its dataset below it.
  const CommandResult made =
      RunCommand({testing::BinDir() + "/hetero-runtime", "make-dataset", "--format", "ImageFolder",
                  "--classes", "10", "--samples", "600", "--validation-samples", "100", "--size",
                  "32", "--seed", "7", space.folder() + "/quickstart"});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  json manifest = Example("quickstart.yaml");
  MountData(manifest);
  for (const char* role : {"head", "cpu", "gpu"}) {
    RuntimeOf(manifest, role)["resources"]["requests"] = {{"cpu", "100m"}};
  }
  manifest["spec"]["output"]["uri"] = "file:///data/output";
  manifest["spec"]["training"]["epochs"] = 2;  // the README's test has all of its epochs
  const json local = LocalReport(manifest, space.folder() + "/quickstart");
  ASSERT_TRUE(local.is_object());

  Stopwatch watch;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("PodsCreated"));
  watch.Lap("pods created");
  ASSERT_TRUE(job.WaitIs("Registered", seconds(180)));
  watch.Lap("registered");
  ASSERT_TRUE(WaitStep(job, 1));
  watch.Lap("first step");
  EXPECT_TRUE(job.Is("Running"));
  const int64_t seen = StepOf(job);
  ASSERT_TRUE(WaitStep(job, seen + 1)) << "progress moves in the status while it runs";
  ASSERT_TRUE(job.WaitIs("Succeeded", seconds(300)));
  watch.Lap("done");
  ASSERT_TRUE(job.WaitGone(seconds(120)));
  watch.Lap("gone");

  const json status = job.Status();
  EXPECT_EQ(status["result"]["streamDigest"], local["streamDigest"]);
  EXPECT_NEAR(status["result"].value("accuracy", -1.0), local.value("accuracy", -2.0), 0.05)
      << "the same batches in the same order; sums of floats may differ by their grouping";
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  EXPECT_FALSE(status.contains("firstFailure")) << status.dump(1);
  const std::string report = space.folder() + "/output/report.json";
  ASSERT_TRUE(std::filesystem::exists(report));
  EXPECT_EQ(json::parse(ReadFileOrDie(report))["streamDigest"], local["streamDigest"]);
  EXPECT_TRUE(std::filesystem::exists(space.folder() + "/output/report.html"));
  ExpectReportFetched(job, space.name(), local["streamDigest"]);
}

}  // namespace
}  // namespace hetero::testing
