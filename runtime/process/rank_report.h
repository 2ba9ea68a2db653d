#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/head/loss_curve.h"
#include "runtime/job/schedule.h"
#include "runtime/job/stream_digest.h"
#include "runtime/process/life_log.h"

namespace hetero::process {

// What one rank has done so far, gathered by the thread that trains (or discards) and sent to the
// head with each heartbeat. Also prints the rank's console lines. Thread-safe.
class RankReport {
 public:
  struct Options {
    int32_t rank = 0;
    uint64_t seed = 0;
    int64_t window_bytes = 0, window_batches = 0;                // that may wait at this rank
    base::Duration console_interval = std::chrono::seconds(10);  // between lines inside an epoch
    std::function<void(const std::string&)> print;               // one console line; may be empty
    // How long each step took, waiting for data included; may be empty. Not to call back.
    std::function<void(double seconds)> on_step_seconds;
  };
  // `schedule` outlives the report.
  RankReport(Options options, const job::Schedule* schedule, base::Clock& clock);

  // The rank asks for its first batch.
  void OnStart();
  // The computation of a training step begins with this batch; who tells it tells OnBatch() after
  // it.
  void OnComputation(const feed::Batch& batch);
  // A consumed batch of either split, before it is used.
  void OnBatch(const feed::Batch& batch, const feed::StreamStats& stats);
  // A completed step. `loss` is ignored when input-only.
  void OnStep(int64_t step, int64_t samples, double loss, double seconds, bool has_loss);
  // A step whose gradients were not finite, so that it changed nothing.
  void OnSkippedStep();
  void OnEvaluation(const v1::EvaluationResult& evaluation);
  // Whole job's digest and samples; without it the rank's own are reported.
  void OnJobDigest(const job::StreamDigest& digest, int64_t samples_consumed);
  // `step` steps and `samples` samples of the job were done before this rank began.
  void OnResume(int64_t step, int64_t samples);
  // The rank's script goes on after `step` steps, of which the whole job's digest is `digest` where
  // it is `proven`. What was consumed here since an earlier position does not count any more, and
  // all time but that of waiting for batches is the script's own.
  void OnScriptPosition(int64_t step, const job::StreamDigest& digest, bool proven);
  // Numbers that the script tells after `step` steps were given out to it; those that are not
  // finite are left out, but for the loss. Rank 0's `loss` and `accuracy` are the job's, as if the
  // trainer had found them.
  void OnReported(const std::map<std::string, double>& values, int64_t step);
  // The process group broke here.
  void OnBreak(const std::string& why);
  void OnCheckpoint(const std::string& uri, int64_t step);
  void OnCheckpointProblem(const std::string& problem);
  void OnNotice(const std::string& line);  // printed
  void OnPhases(const v1::PhaseSeconds& phases, double train_seconds);
  // The whole job's rate without input, as probed.
  void OnCeiling(double samples_per_second);

  // Counters and progress as of now, lists with what is new since the last call. They have a bound
  // however long ago that was: the curve is thinned, of evaluations the newest stay, and of many
  // bad samples the first have their reasons and the last come with the next call.
  v1::Heartbeat Take();
  job::StreamDigest digest() const;
  std::optional<v1::EvaluationResult> last_evaluation() const;

 private:
  struct Interval {  // since the last console line or rate update
    base::Instant begin{};
    int64_t samples = 0;
    int64_t steps = 0;
    double wait_seconds = 0;
  };

  void AddLoss(int64_t step, double loss, double seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEvaluation(const v1::EvaluationResult& evaluation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddAccuracy(int64_t step, double accuracy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddScriptTime(base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PrintLine(const job::Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateRates(base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const job::Schedule* const schedule_;
  base::Clock& clock_;

  mutable base::Mutex mutex_;
  v1::Progress progress_ ABSL_GUARDED_BY(mutex_);
  v1::Counters counters_ ABSL_GUARDED_BY(mutex_);
  job::StreamDigest own_digest_ ABSL_GUARDED_BY(mutex_);
  base::Instant started_ ABSL_GUARDED_BY(mutex_){};
  // What was not taken yet. While the head is away that may be for days.
  head::LossCurve losses_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::EvaluationResult> evaluations_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::BadSampleReport> bad_samples_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::EvaluationResult> last_evaluation_ ABSL_GUARDED_BY(mutex_);
  // (validation, sample id), each reported once
  std::set<std::pair<bool, int64_t>> bad_ids_ ABSL_GUARDED_BY(mutex_);
  feed::StreamStats stats_ ABSL_GUARDED_BY(mutex_);
  LifeLog lives_ ABSL_GUARDED_BY(mutex_);
  // Sum over the steps of that epoch for which this rank knows the loss.
  int64_t loss_epoch_ ABSL_GUARDED_BY(mutex_) = -1;
  double epoch_loss_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t epoch_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Script {
    double seconds_before = 0;   // trained by those before the one that runs
    base::Instant stepped_at{};  // by the one that runs; its beginning before that
    double step_seconds = 0;     // of its last step
    // Of a step that it has not ended yet.
    std::optional<std::pair<int64_t, double>> loss;
  };
  std::optional<Script> script_ ABSL_GUARDED_BY(mutex_);  // once one has begun
  Interval line_ ABSL_GUARDED_BY(mutex_);
  Interval rate_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::process
