#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/insight/resource_use.h"

// report.json and report.html: the machine-readable and the readable result of every run. Field
// names are docs/report.md's; an absent optional means "not applicable" and is left out of the
// file, never written as zero. Pure values; formatting and writing only.
namespace hetero::insight {

struct PhaseSeconds {  // of one rank; sums to its trainSeconds
  double wait = 0, host_to_device = 0, forward = 0, backward = 0, all_reduce = 0, optimizer = 0,
         checkpoint = 0, evaluation = 0, other = 0;
};

struct WaitSeconds {  // sums to PhaseSeconds::wait
  double no_worker = 0, workers = 0, transfer = 0, handover = 0;
};

// Where one rank's time had gone when it had completed `step` steps.
struct TimePoint {
  int64_t step = 0;
  double seconds = 0;
  PhaseSeconds phases;
};

struct ReportTimeLine {
  int32_t rank = 0;
  std::vector<TimePoint> points;  // totals; the last one is the whole training
};

// Where one entry of the pipeline ran.
struct ReportPlacement {
  std::string op;
  std::string function;  // of a Python operator: module.function
  std::string where;     // CPUWorker, Trainer
  std::string reason;
  // Of one core, per sample; of the worker's, those in an interpreter of Python.
  std::optional<double> worker_seconds, python_seconds, trainer_seconds;
  std::optional<int64_t> bytes_in, bytes_out;  // of one sample; absent: varies
};

// What the job's rate would be with other replicas of one CPU role.
struct ReportPrediction {
  std::string role;
  int32_t replicas = 0;
  double samples_per_second = 0;
  std::optional<double> dollars_per_1000_steps;
};

struct ReportEvaluation {
  int64_t epoch = 0, step = 0;
  double loss = 0, accuracy = 0;
  int64_t samples = 0;
};

struct ReportLoss {
  int64_t step = 0;
  double loss = 0, seconds_per_step = 0;
};

// What reading the consumed samples takes in one order of them: an estimate.
struct ReportOrder {
  std::string shuffle;  // "Full", "Block of 64"
  int64_t requests = 0;
  std::optional<int64_t> bytes;
  std::optional<double> dollars;
};

// What stores behind a network were asked for by all processes.
struct ReportStorage {
  int64_t requests = 0, retries = 0, bytes = 0;
  std::optional<double> dollars;    // where an entry of spec.storage has prices
  std::vector<ReportOrder> orders;  // the job's own first; none where it makes no difference
};

struct ReportWorker {
  std::string name;  // "cpu-0"
  std::string role;
  int32_t index = 0;
  std::string node;
  int64_t batches = 0, samples = 0, bytes = 0;
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
  int64_t restarts = 0;
  int64_t storage_requests = 0, storage_bytes = 0;
  std::optional<double> data_wait_percent;       // of a trainer's own trainSeconds
  int64_t window_bytes = 0, window_batches = 0;  // of a trainer: that may wait there; 0: not known
};

// From the first process asked for until the last one's end, or as long as it is known to have run.
struct ReportAttempt {
  int64_t attempt = 1;
  std::string time;  // RFC 3339, UTC
  double seconds = 0;
  std::string cause;  // empty: the first, or not known
};

struct ReportFault {
  std::string time;  // RFC 3339, UTC
  std::string what;
  std::optional<double> recovery_seconds;
};

// That a member's machine was about to go, and how long after that the training was saved.
struct ReportDisruption {
  std::string time;  // RFC 3339, UTC
  std::string member;
  std::string sign;                          // "node a: taint karpenter.sh/disrupted"
  std::optional<double> checkpoint_seconds;  // absent: it was not, or has no checkpoints
  int64_t checkpoint_step = 0;               // steps done in it
};

// What a rule has found: what was slow and what to change.
struct ReportFinding {
  std::string rule;     // "InputBound"
  std::string message;  // one sentence with figures, without a full stop
  std::string remedy;   // what to change, as an instruction
  std::string field;    // of the manifest below `spec`; empty: none
  std::string member;   // "cpu-0"; empty: the job
  double seconds = 0;   // of training that it has cost; 0: not known
  std::optional<double> dollars;
  std::string since;    // RFC 3339, UTC: when it was first found; empty: not known
  bool active = false;  // it still held at the end
};

struct ReportBadSample {
  int64_t sample_id = 0;
  int64_t replacement_id = 0;
  std::string reason;
};

// What one member used, over all its processes that the head has heard.
struct ReportResources {
  static constexpr size_t kMostPoints = 120;

  std::string member;  // "cpu-0"
  std::string role;
  int32_t index = 0;
  double seconds = 0;  // that was looked at
  double cores = 0;    // that it might use
  SecondsByGroup cpu_seconds{};
  double busy_cores_median = 0, busy_cores_p95 = 0;  // weighed by time
  double run_queue_seconds = 0;
  std::optional<double> throttled_seconds;
  int64_t peak_rss_bytes = 0, major_faults = 0;
  int64_t disk_read_bytes = 0, disk_written_bytes = 0, received_bytes = 0, sent_bytes = 0;
  std::optional<double> gpu_utilization;  // mean over its GPUs and the time, 0..1
  std::vector<UsePoint> time_line;        // at most kMostPoints
};

// How long one span of the life of a batch took, in seconds.
struct ReportLifeSpan {
  std::string span;   // "queued"
  int64_t count = 0;  // batches, or steps, that were looked at
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;
};

struct Report {
  std::string job;
  std::string state;    // Succeeded, Failed, Stopped
  std::string message;  // why it failed or stopped, or that its scripts ended early
  int64_t attempt = 1;
  std::vector<ReportAttempt> attempts;  // what lies between them was waiting
  int64_t generations = 0;
  std::optional<int64_t> script_restarts;  // of a job whose ranks run scripts
  std::optional<int64_t> epochs, steps, samples_consumed;
  int64_t duplicates_dropped = 0, tickets_reissued = 0, bad_samples = 0;
  int64_t skipped_steps = 0;                     // gradients not finite
  std::vector<ReportBadSample> bad_sample_list;  // at most 100
  std::optional<std::string> stream_digest;
  std::string digest_problem;  // why it is not known though samples were consumed
  int64_t seed = 0;
  std::optional<double> startup_seconds, train_seconds, wall_seconds, samples_per_second,
      ceiling_samples_per_second, data_wait_percent;
  std::string ceiling_source;  // "Probe", "Steps"; empty without a ceiling
  std::optional<PhaseSeconds> phase_seconds;
  std::optional<WaitSeconds> wait_seconds;
  std::vector<ReportTimeLine> time_lines;  // by rank
  std::vector<ReportPrediction> predictions;
  std::vector<ReportPlacement> placement;  // by pipeline entry
  std::optional<double> loss, accuracy;
  std::vector<ReportEvaluation> evaluations;
  std::vector<ReportLoss> loss_curve;
  std::map<std::string, double> reported;  // by scripts, the latest of each name
  std::vector<ReportWorker> workers;
  std::map<std::string, double> cpu_seconds_per_sample;  // by role
  std::vector<ReportFault> faults;
  std::vector<ReportDisruption> disruptions;
  // Because processes of rank 0 began before where ranks had been; as far as ranks told.
  std::optional<int64_t> steps_redone;
  std::optional<double> cost_dollars, cost_per_million_samples;
  std::optional<ReportStorage> storage;  // none where nothing was asked
  std::optional<std::string> verdict, checkpoint_uri, checkpoint_problem;
  std::optional<int64_t> resumed_from_step;     // by rank 0's process, from a checkpoint or a peer
  std::string config_json;                      // the manifest as run
  std::map<std::string, std::string> versions;  // "hetero", "libtorch", ...
  std::vector<ReportFinding> findings;          // causes first
  std::vector<ReportResources> resources;       // by member
  std::vector<ReportLifeSpan> batch_lives;      // in the order of a life, then of whole steps
};

// Pretty-printed JSON, keys in docs/report.md's order.
std::string ToJson(const Report& report);

// One self-contained page: summary, loss curve, step-time split, per-worker table, faults; inline
// SVG and style, no script from elsewhere, readable in light and dark.
std::string ToHtml(const Report& report);

// A few lines for a terminal: state, steps, samples/s, accuracy, waits, where the report is.
std::string ToSummary(const Report& report);

// Gives report.json and report.html to `write`, one after the other, by name and bytes. Errors are
// its own, with a remedy.
absl::Status WriteReport(
    const Report& report,
    const std::function<absl::Status(const std::string& file, const std::string& bytes)>& write);

// Into `folder` (created), each under a temporary name, fsynced, then renamed. Errors name the file
// and the reason (for example no space left on device).
absl::Status WriteReport(const Report& report, const std::string& folder);

}  // namespace hetero::insight
