// CPU workers that are added and taken away while the job trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/integration/e2e/support/installation.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

std::map<std::string, int64_t> BatchesOf(const json& report) {
  std::map<std::string, int64_t> batches;
  for (const json& worker : report["workers"]) {
    if (worker["role"] == "cpu") batches[worker["name"]] = worker.value("batches", int64_t{0});
  }
  return batches;
}

// The head reads the manifest that the attempt began with. It refused the third worker, and each
// that took its place, until the job had no restart left.
TEST(Scaled, CpuWorkersThatAreAddedWhileItTrainsTakePart) {
  Installation::Get();
  if (SharedFolder().empty()) GTEST_SKIP() << "nodes share no folder with this machine";
  json manifest = SlowJob("scaled");
  manifest["spec"]["training"]["epochs"] = 4;
  const std::string digest = LocalReport(manifest).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  MountData(manifest);
  manifest["spec"]["output"]["uri"] = "file:///data/output";
  JobNamespace space("scaled");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(WaitStep(job, 5));
  json roles = manifest["spec"]["roles"];
  roles[1]["replicas"] = 4;
  job.PatchSpec({{"roles", roles}});
  ExpectSucceededWithDigest(job, digest);
  const json status = job.Status();
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  EXPECT_EQ(status.value("attempt", 0), 1) << status.dump(1);
  const json report = json::parse(ReadFileOrDie(space.folder() + "/output/report.json"));
  for (const auto& [name, batches] : BatchesOf(report)) EXPECT_GT(batches, 0) << name;
  EXPECT_EQ(BatchesOf(report).size(), 4u) << report["workers"].dump(1);
}

}  // namespace
}  // namespace hetero::testing
