#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/insight/report.h"

// What the rules read: what was measured of a job in one window of time, as differences of totals
// unless a member says otherwise. Plain values, filled by whoever keeps the counters. What was not
// measured stays at its default, which no rule takes for a measured zero. Names of phases, waits
// and orders are report.h's.
namespace hetero::insight {

// CPU time of the threads that do one thing: "pipeline", "feed", "train", "python", "storage",
// "grpc", "other".
struct ThreadGroupEvidence {
  std::string name;
  double cpu_seconds = 0;
  int32_t threads = 0;                // most at once in the window
  double busiest_thread_seconds = 0;  // sum over the spans of the one thread that used most in it
};

// One GPU in one span.
struct GpuMoment {
  int32_t index = 0;       // of NVML
  double utilization = 0;  // share of the span in which a kernel ran, 0..1
  int64_t memory_used_bytes = 0;
  int64_t memory_total_bytes = 0;
};

// One span of a member's time, in order and not overlapping: a ResourcePoint, or several as one.
// A window has at most some hundreds.
struct Moment {
  double at_seconds = 0;              // end of the span, from the window's begin
  double seconds = 0;                 // its length
  double cpu_share = 0;               // of the cores that the member may use, 0..1
  std::optional<double> io_pressure;  // share in which a task waited for disks, 0..1
  int64_t rss_bytes = 0;              // with its children's
  std::vector<GpuMoment> gpus;
};

// Requests to stores behind a network.
struct StorageEvidence {
  int64_t requests = 0;   // those sent again included
  int64_t retries = 0;    // of them, sent again after one that failed
  int64_t throttled = 0;  // of them, answered with "slow down"
  int64_t bytes = 0;      // that arrived
  double seconds = 0;     // from request to the end of its answer, sum over requests; 0: not known
};

// What one entry of the pipeline cost on one CPU worker, on the samples that it measured.
struct OperatorEvidence {
  int64_t samples = 0;
  double cpu_seconds = 0;     // interpreters of Python included
  double python_seconds = 0;  // of it, in interpreters
};

enum class MemberKind { kHead, kCpuWorker, kTrainer };

// A process of the job: a CPU worker, or a trainer, which is one rank.
struct MemberEvidence {
  std::string name;  // "cpu-0"
  std::string role;  // of the manifest: "cpu"
  MemberKind kind = MemberKind::kCpuWorker;
  std::string node;    // empty: not known
  double seconds = 0;  // of the window that its resources cover; 0: none are known
  std::vector<ThreadGroupEvidence> groups;
  double run_queue_seconds = 0;             // threads were ready and did not run; sum over them
  std::optional<double> throttled_seconds;  // stopped by the CPU quota
  int64_t disk_read_bytes = 0, disk_written_bytes = 0;
  int64_t received_bytes = 0, sent_bytes = 0;  // by the machine or pod
  double cores = 0;                            // that it may use, mean; 0: not known
  double machine_cores = 0;                    // that its machine has; 0: not known
  double machine_busy_cores = 0;               // of it, mean, whoever used them
  int64_t memory_limit_bytes = 0;              // 0: not known
  std::vector<Moment> moments;
  // Its clock minus the head's, and how wrong that may be.
  std::optional<double> clock_offset_seconds;
  double clock_error_seconds = 0;

  // Of a CPU worker.
  int64_t batches = 0, samples = 0, bytes = 0;  // delivered
  double busy_seconds = 0;                      // with at least one ticket to serve
  // Sums over its batches: from begun until made, and of it waiting for storage. 0: not known.
  double work_seconds = 0, read_seconds = 0;
  std::vector<OperatorEvidence> operators;  // by entry of the pipeline

  StorageEvidence storage;
};

// Where one batch spent its time; message BatchLife.
struct LifeEvidence {
  std::string worker;  // empty: the rank itself made it
  double queued_seconds = 0, work_seconds = 0, transfer_seconds = 0, window_seconds = 0,
         handover_seconds = 0, step_seconds = 0;
  double read_seconds = 0;  // of work_seconds
  double cpu_seconds = 0;   // of all cores, within work_seconds
  int32_t samples = 0;
  int64_t bytes = 0;
};

struct RankEvidence {
  int32_t rank = 0;
  std::string member;   // its name
  int64_t steps = 0;    // completed
  PhaseSeconds phases;  // of a script `wait` and `other` alone
  WaitSeconds waits;
  // Of each step without checkpoints and evaluations, in order; a few hundred, evenly chosen where
  // there were more. Empty: not known.
  std::vector<double> step_seconds;
  std::vector<LifeEvidence> lives;  // of one batch in a hundred
};

// One entry of the pipeline.
struct PipelineEntry {
  std::string op;        // "GaussianBlur"
  std::string function;  // of a Python operator: module.function
  bool on_trainer = false;
};

struct LossEvidence {
  int64_t step = 0;
  double loss = 0;  // may be NaN or infinite
};

struct RoleEvidence {
  std::string name;
  MemberKind kind = MemberKind::kCpuWorker;
  int32_t replicas = 0;                  // that were wanted
  int32_t min_replicas = 0;              // below which the job may not go; CPU workers
  bool scaled_by_job = false;            // autoscaling decides about the replicas
  std::optional<double> price_per_hour;  // of one replica, in dollars
  int32_t gpus_per_replica = 0;
};

// What was asked for, and what counts from the beginning of the training instead of the window.
struct JobEvidence {
  std::vector<RoleEvidence> roles;
  std::vector<PipelineEntry> pipeline;
  bool script = false;              // ranks run the user's own program
  int32_t batch_size = 0;           // samples per rank and step
  int32_t partitions = 1;           // of the model
  int64_t dataset_samples = 0;      // 0: not known
  std::string storage_uri;          // of the dataset
  std::string shuffle;              // "Full", "Block of 64"
  std::vector<ReportOrder> orders;  // of one sample each, or of any same number; the job's first
  std::optional<int64_t> checkpoint_every_steps;
  std::optional<double> checkpoint_every_seconds;
  std::optional<int64_t> evaluation_every_steps, evaluation_every_epochs;
  std::optional<double> learning_rate;  // not known of a script

  // From the creation of the job until the first step, or until now while there was none.
  double startup_seconds = 0;
  // Of rank 0, from the beginning of this training until now.
  double train_seconds = 0;
  double checkpoint_seconds = 0, evaluation_seconds = 0;
  int64_t checkpoints = 0, evaluations = 0;
  int64_t first_step = 0;  // that were done before this training began
  int64_t steps = 0;       // done now, those included
  int64_t total_steps = 0;
  std::vector<LossEvidence> losses;  // in order, thinned; of a script only what it told
  int64_t skipped_steps = 0;         // their gradients were not finite
};

struct Evidence {
  double window_seconds = 0;
  // The window is the whole training, which has ended: a short one is judged too.
  bool complete = false;
  JobEvidence job;
  std::vector<MemberEvidence> members;
  std::vector<RankEvidence> ranks;  // in order
};

}  // namespace hetero::insight
