// The stream of batches is a function of the job: not of the number of workers or ranks, nor of
// what dies.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/feed/safetensors.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/test_cluster.h"

namespace hetero {
namespace {

using testing::RunToReport;
using testing::SmallJob;
using testing::TestCluster;

std::string Digest(const std::vector<std::string>& overrides) {
  const nlohmann::json report = RunToReport({.job = SmallJob(overrides), .input_only = true});
  return report.value("streamDigest", "");
}

TEST(Stream, IsTheSameForAnyNumberOfCpuWorkers) {
  const std::string none = Digest({"roles.cpu.replicas=0"});
  EXPECT_EQ(none.size(), 32u);
  EXPECT_EQ(Digest({"roles.cpu.replicas=1"}), none);
  EXPECT_EQ(Digest({"roles.cpu.replicas=3"}), none);
}

TEST(Stream, IsTheSameForOneRankAndForTwo) {
  EXPECT_EQ(Digest({"roles.gpu.replicas=1", "training.batchSizePerWorker=64"}),
            Digest({"roles.gpu.replicas=2", "training.batchSizePerWorker=32"}));
}

TEST(Stream, DiffersForAnotherSeed) {
  EXPECT_NE(Digest({"training.seed=1"}), Digest({"training.seed=2"}));
}

// 500 samples and 2 x 32 leave a tail of 52, split 26 and 26.
TEST(Stream, HoldsEverySampleOfAnEpochExactlyOnce) {
  TestCluster cluster({.job = SmallJob({"dataset.samples=500", "roles.cpu.replicas=2"}),
                       .input_only = true,
                       .dump_stream = true});
  EXPECT_EQ(cluster.Wait().state(), v1::JobStatus::SUCCEEDED);

  std::map<std::string, std::multiset<int64_t>> ids_by_epoch;
  for (const auto& file : std::filesystem::directory_iterator(cluster.dump_folder())) {
    const absl::StatusOr<feed::SafetensorsFile> read = feed::ReadSafetensors(file.path());
    ASSERT_TRUE(read.ok()) << read.status();
    const feed::Tensor& ids = read->tensors.at("sample_ids");
    const auto* values = reinterpret_cast<const int64_t*>(ids.data.data());
    ids_by_epoch[read->metadata.at("epoch")].insert(values,
                                                    values + ids.data.size() / sizeof(int64_t));
  }
  ASSERT_EQ(ids_by_epoch.size(), 2u);
  for (const auto& [epoch, ids] : ids_by_epoch) {
    ASSERT_EQ(ids.size(), 500u) << "epoch " << epoch;
    int64_t expected = 0;
    for (const int64_t id : ids) EXPECT_EQ(id, expected++) << "epoch " << epoch;
  }
  EXPECT_EQ(cluster.report()["samplesConsumed"], 1000);
}

TEST(Stream, SurvivesTheLossAndTheReturnOfWorkers) {
  const std::vector<std::string> slow = {
      "roles.cpu.replicas=2", "dataset.samples=1024",
      "pipeline=[{op: Delay, milliseconds: 2}, {op: HorizontalFlip}, {op: Normalize}]"};
  const std::string undisturbed = Digest(slow);
  TestCluster cluster({.job = SmallJob(slow), .input_only = true});
  const auto reached = [&cluster](int64_t step) {
    while (cluster.head().status().state() <= v1::JobStatus::RUNNING &&
           cluster.head().status().progress().step() < step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  reached(2);
  cluster.StopWorker(0);
  reached(6);
  cluster.StartWorker(0);
  cluster.StopWorker(1);
  EXPECT_EQ(cluster.Wait().state(), v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(cluster.report()["streamDigest"], undisturbed);
}

}  // namespace
}  // namespace hetero
