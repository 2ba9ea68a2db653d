#include "tests/integration/support/test_cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/clock.h"
#include "base/grpc_lifetime.h"
#include "runtime/process/consumer.h"
#include "runtime/process/cpu_worker.h"
#ifdef HETERO_WITH_TRAIN
#include "runtime/train/program/trainer_process.h"
#endif

namespace hetero::testing {
namespace {

const api::Role* RoleOfType(const api::HeteroTrainingJob& job, api::RoleType type) {
  for (const api::Role& role : job.spec.roles) {
    if (role.type == type) return &role;
  }
  return nullptr;
}

}  // namespace

TestCluster::TestCluster(Options options) : options_(std::move(options)) {
  // LibTorch's flight recorder is one per process and cannot bear several ranks in it.
  setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  base::KeepGrpcInitialized();
  base::Clock& clock = base::Clock::Real();
  incarnation_ = clock.WallNow().time_since_epoch().count();
  std::filesystem::create_directories(dump_folder());
  head::Server::Options head_options;
  head_options.job = options_.job;
  head_options.listen_address = "unix:" + (folder_ / "head.sock");
  head_options.tls.plain_text = true;
  head_options.input_only = options_.input_only;
  head_options.output_folder = folder_ / "out";
  head_options.created = clock.WallNow();
  absl::StatusOr<std::unique_ptr<head::Server>> head =
      head::Server::Start(std::move(head_options), clock);
  if (!head.ok()) {
    ADD_FAILURE() << head.status();
    return;
  }
  head_ = *std::move(head);
  if (const api::Role* cpu = RoleOfType(options_.job, api::RoleType::kCpuWorker)) {
    for (int32_t index = 0; index < cpu->replicas; ++index) StartWorker(index);
  }
  const api::Role* gpu = RoleOfType(options_.job, api::RoleType::kGpuWorker);
  for (int32_t index = 0; index < gpu->replicas; ++index) StartRank(*gpu, index);
}

TestCluster::~TestCluster() {
  for (auto* tasks : {&ranks_, &workers_}) {
    for (auto& [index, task] : *tasks) task.stop.request_stop();
  }
  ranks_.clear();
  workers_.clear();
}

void TestCluster::StartWorker(int32_t index) {
  const api::Role& role = *RoleOfType(options_.job, api::RoleType::kCpuWorker);
  process::CpuWorkerOptions options;
  options.identity.member.set_role(role.name);
  options.identity.member.set_role_type("CPUWorker");
  options.identity.member.set_index(index);
  options.identity.member.set_incarnation(++incarnation_);
  options.identity.head_address = head_->address();
  options.identity.tls.plain_text = true;
  options.listen_address =
      "unix:" +
      (folder_ / ("cpu-" + std::to_string(index) + "." + std::to_string(incarnation_ % 100000)));
  options.threads = 1;
  Task& task = workers_[index];
  task.stop = std::stop_source();
  task.thread = std::jthread([options, stop = task.stop.get_token()] {
    const absl::Status status = process::RunCpuWorker(options, base::Clock::Real(), stop);
    EXPECT_TRUE(status.ok()) << status;
  });
}

void TestCluster::StopWorker(int32_t index) {
  workers_.at(index).stop.request_stop();
  workers_.erase(index);
}

void TestCluster::StartRank(const api::Role& role, int32_t index) {
  process::RankSession::Options options;
  options.identity.member.set_role(role.name);
  options.identity.member.set_role_type("GPUWorker");
  options.identity.member.set_index(index);
  options.identity.member.set_incarnation(++incarnation_);
  options.identity.head_address = head_->address();
  options.identity.host = "127.0.0.1";
  options.identity.tls.plain_text = true;
  options.local_threads = 1;
  if (options_.dump_stream) options.dump_stream_folder = dump_folder();
  Task& task = ranks_[index];
  task.thread = std::jthread([this, options, index, stop = task.stop.get_token()] {
    absl::Status status;
    if (options_.input_only) {
      status = process::RunConsumer(options, base::Clock::Real(), stop);
    } else {
#ifdef HETERO_WITH_TRAIN
      const auto record = [this, index](int64_t epoch, uint32_t crc) {
        std::lock_guard lock(mutex_);
        parameter_crcs_[{index, epoch}] = crc;
      };
      status = train::RunTrainerProcess({.session = options, .threads = 1, .on_epoch_end = record},
                                        base::Clock::Real(), stop);
#else
      status = absl::UnimplementedError("built without LibTorch");
#endif
    }
    std::lock_guard lock(mutex_);
    rank_results_[index] = status;
  });
}

v1::JobStatus TestCluster::Wait(std::chrono::seconds deadline) {
  std::future<v1::JobStatus> end = std::async(std::launch::async, [this] { return head_->Wait(); });
  if (end.wait_for(deadline) != std::future_status::ready) {
    ADD_FAILURE() << "job still running after " << deadline.count()
                  << " s: " << head_->status().ShortDebugString();
    head_->Stop("test deadline");
  }
  const v1::JobStatus status = end.get();
  for (auto& [index, task] : ranks_) {
    if (task.thread.joinable()) task.thread.join();
  }
  return status;
}

nlohmann::json TestCluster::report() const {
  return nlohmann::json::parse(ReadFileOrDie(folder_ / "out/report.json"));
}

std::map<int32_t, absl::Status> TestCluster::rank_results() const {
  std::lock_guard lock(mutex_);
  return rank_results_;
}

std::map<std::pair<int32_t, int64_t>, uint32_t> TestCluster::parameter_crcs() const {
  std::lock_guard lock(mutex_);
  return parameter_crcs_;
}

nlohmann::json RunToReport(TestCluster::Options options) {
  TestCluster cluster(std::move(options));
  const v1::JobStatus status = cluster.Wait();
  EXPECT_EQ(status.state(), v1::JobStatus::SUCCEEDED) << status.ShortDebugString();
  return cluster.report();
}

}  // namespace hetero::testing
