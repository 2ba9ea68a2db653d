// A head, a rank that only reads, and CPU workers as real processes, of which the last one starts
// when the dataset is another.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/grpc_lifetime.h"
#include "runtime/head/server.h"
#include "runtime/process/consumer.h"
#include "runtime/source/make_dataset.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero {
namespace {

using std::chrono::milliseconds;

class OtherDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base::KeepGrpcInitialized();
    ASSERT_TRUE(source::MakeDataset({.folder = data_,
                                     .classes = 4,
                                     .samples = 64,
                                     .validation_samples = 4,
                                     .size = {16, 16}})
                    .ok());
    head::Server::Options options;
    // 10 ms a sample and thread: some seconds.
    options.job = testing::SmallJob({"dataset={uri: \"file://" + data_ + "/train\"}",
                                     "pipeline=[{op: Decode}, {op: Delay, milliseconds: 10}, "
                                     "{op: Resize, size: {height: 16, width: 16}}, "
                                     "{op: Normalize}]",
                                     "training.epochs=12", "training.batchSizePerWorker=8",
                                     "roles.gpu.replicas=1", "roles.cpu.replicas=2",
                                     "roles.cpu.minReplicas=1"});
    options.listen_address = "unix:" + (folder_ / "head.sock");
    options.tls.plain_text = true;
    options.input_only = true;
    options.created = base::Clock::Real().WallNow();
    auto head = head::Server::Start(std::move(options), base::Clock::Real());
    ASSERT_TRUE(head.ok()) << head.status();
    head_ = *std::move(head);
  }
  void StartWorker(int index) {
    const std::string name = std::to_string(index);
    workers_.push_back(std::make_unique<testing::ProgramRun>(
        "hetero-runtime",
        std::vector<std::string>{"cpu-worker", "--listen", "unix:" + (folder_ / ("cpu-" + name)),
                                 "--threads", "1"},
        std::vector<std::string>{"HETERO_ROLE=cpu", "HETERO_ROLE_TYPE=CPUWorker",
                                 "HETERO_INDEX=" + name, "HETERO_JOB_NAME=small",
                                 "HETERO_INCARNATION=1", "HETERO_HEAD_ADDRESS=" + head_->address(),
                                 "HETERO_TLS=plain-text"}));
  }
  absl::Status Consume() {
    process::RankSession::Options options;
    options.identity.member.set_role("gpu");
    options.identity.member.set_role_type("GPUWorker");
    options.identity.member.set_incarnation(1);
    options.identity.head_address = head_->address();
    options.identity.host = "127.0.0.1";
    options.identity.tls.plain_text = true;
    options.local_threads = 1;
    return process::RunConsumer(std::move(options), base::Clock::Real(), {});
  }
  bool WaitForFault(const std::string& text) const {
    for (int i = 0; i < 600; ++i) {
      for (const insight::ReportFault& fault : head_->ReportSoFar().faults) {
        if (fault.what.find(text) != std::string::npos) return true;
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
    return false;
  }

  testing::TemporaryFolder folder_;
  const std::string data_ = folder_ / "data";
  std::unique_ptr<head::Server> head_;
  std::vector<std::unique_ptr<testing::ProgramRun>> workers_;
};

TEST_F(OtherDataTest, AWorkerThatStartsAfterAFileWasAddedIsNamedAndTheJobEndsWithoutIt) {
  StartWorker(0);
  absl::Status consumed;
  std::jthread rank([&] { consumed = Consume(); });
  for (int i = 0; i < 600 && head_->status().progress().step() == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  ASSERT_GT(head_->status().progress().step(), 0);
  const std::filesystem::path train = std::filesystem::path(data_) / "train";
  std::filesystem::path one;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(train)) {
    if (entry.is_regular_file()) one = entry.path();
  }
  std::filesystem::copy_file(one, one.parent_path() / "added.jpg");
  StartWorker(1);
  EXPECT_TRUE(
      WaitForFault("cpu-1 does not see the job's data: it has 65 training samples, gpu-0 64"));
  EXPECT_TRUE(workers_[1]->running());  // it is not started again and again on the same data
  const v1::JobStatus ended = head_->Wait();
  rank.join();
  EXPECT_TRUE(consumed.ok()) << consumed;
  EXPECT_EQ(ended.state(), v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(ended.progress().samples_consumed(), 12 * 64);
  for (const insight::ReportWorker& worker : head_->ReportSoFar().workers) {
    if (worker.name == "cpu-1") {
      EXPECT_EQ(worker.samples, 0);
    }
  }
}

}  // namespace
}  // namespace hetero
