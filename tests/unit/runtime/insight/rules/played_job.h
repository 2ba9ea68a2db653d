#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/insight/evidence.h"

// A job that never ran: CPU workers, ranks, stores and machines on virtual time, whose counters add
// up as processes' do. It knows nothing of the rules: what is wrong with a job is said of its
// machines and programs, and shows in the counters as it may.
namespace hetero::insight {

struct PlayedMachine {
  double cores = 32;
  double other_threads = 0;  // of others, always ready to run
  double clock_offset = 0;   // seconds
};

struct PlayedOperator {
  std::string op;
  double cpu_seconds = 0;  // of one sample
  bool python = false;
  bool on_trainer = false;
};

// A process that makes batches, on `threads` threads at once.
struct PlayedWorker {
  std::string machine;
  int32_t threads = 4;
  double cores = 4;                // that it may use
  double slowness = 1;             // factor on its CPU time, as of an old processor
  std::optional<int32_t> of_rank;  // the rank makes its own batches in its own process
};

struct PlayedStore {
  double seconds_per_sample = 0;  // reading one, alone
  double throttled = 0;           // share of requests that are answered with "slow down"
  double backoff_seconds = 0.2;   // after one
  double bytes_per_sample = 110e3;
  bool disk = false;  // waiting for it is waiting for a disk
};

struct PlayedStep {  // seconds of one step of one rank
  double host_to_device = 0.002, forward = 0.05, backward = 0.1, all_reduce = 0.005,
         optimizer = 0.004;
  double noise = 0.03;  // of forward and backward, a share
  double outliers = 0;  // share of steps in which something else takes `outlier_seconds`
  double outlier_seconds = 0;
};

struct PlayedRank {
  std::string machine;
  double cores = 8;
  int32_t threads = 1;                             // that compute; on a GPU the one that feeds it
  double slowness = 1;                             // of its device
  double kernel_share = 0.95;                      // of its computing in which a kernel runs
  double rss_growth = 0;                           // bytes a second
  double gpu_memory = 0.8, gpu_memory_growth = 0;  // shares; the latter a minute
};

struct PlayedScript {
  int32_t python_threads = 1;
  bool share_the_lock = false;  // its threads do the work of a step in turns
  double blocked_seconds = 0;   // of each step, without using anything
};

struct PlayedJob {
  std::map<std::string, PlayedMachine> machines;
  std::vector<PlayedWorker> workers;
  std::vector<PlayedOperator> pipeline;
  PlayedStore store;
  std::vector<PlayedRank> ranks;
  PlayedStep step;
  std::optional<PlayedScript> script;
  bool gpus = true;
  int32_t batch = 128;
  double wire_bytes_per_sample = 150528;
  double bandwidth = 1.2e9;  // into one rank, bytes a second
  double worker_rss_growth = 0;
  double memory_limit = 16e9;
  double startup_seconds = 40;
  int64_t checkpoint_every = 0;  // steps; 0: never
  double checkpoint_seconds = 0;
  int64_t evaluation_every = 0;
  double evaluation_seconds = 0;
  bool learns = true;
  std::optional<int64_t> not_finite_from;      // step
  double skipped = 0;                          // share of steps whose gradients are not finite
  std::optional<double> cpu_price, gpu_price;  // dollars an hour of one replica
};

// What was measured of it between `begin` and `end`, in seconds of training.
Evidence Play(const PlayedJob& job, uint64_t seed, double begin = 30, double end = 90);

}  // namespace hetero::insight
