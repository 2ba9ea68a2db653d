#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "runtime/head/server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// A whole job in this process: a real head, real CPU workers and real ranks, each on a thread,
// talking gRPC over unix sockets. Ranks train, or discard their batches when `input_only`.
class TestCluster {
 public:
  struct Options {
    api::HeteroTrainingJob job;
    bool input_only = false;
    bool dump_stream = false;  // into dump_folder()
  };
  explicit TestCluster(Options options);
  ~TestCluster();

  // CPU workers by replica of the (only) CPU role.
  void StartWorker(int32_t index);
  // Takes a worker away: its streams break and its work is lost.
  void StopWorker(int32_t index);

  // Waits for the end of the job; fails the test after `deadline`.
  v1::JobStatus Wait(std::chrono::seconds deadline = std::chrono::seconds(60));
  head::Server& head() { return *head_; }
  nlohmann::json report() const;
  std::string dump_folder() const { return folder_ / "dump"; }
  // What each rank ended with, by replica.
  std::map<int32_t, absl::Status> rank_results() const;
  // CRC32C over the parameters, by (replica, epoch).
  std::map<std::pair<int32_t, int64_t>, uint32_t> parameter_crcs() const;

 private:
  struct Task {
    std::stop_source stop;
    std::jthread thread;
  };
  void StartRank(const api::Role& role, int32_t index);

  Options options_;
  TemporaryFolder folder_;
  std::unique_ptr<head::Server> head_;
  std::map<int32_t, Task> workers_;
  std::map<int32_t, Task> ranks_;
  int64_t incarnation_ = 0;
  mutable std::mutex mutex_;  // guards rank_results_, parameter_crcs_
  std::map<int32_t, absl::Status> rank_results_;
  std::map<std::pair<int32_t, int64_t>, uint32_t> parameter_crcs_;
};

// Runs `job` to its end and returns its report; the state is checked to be Succeeded.
nlohmann::json RunToReport(TestCluster::Options options);

}  // namespace hetero::testing
