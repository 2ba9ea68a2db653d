#include "runtime/process/rank_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/utf8.h"
#include "runtime/feed/digest.h"
#include "runtime/head/heartbeat_buffer.h"
#include "runtime/head/text_limits.h"
#include "runtime/process/process_costs.h"

namespace hetero::process {
namespace {

constexpr base::Duration kRateInterval = std::chrono::seconds(1);

// Fewer than others when maxSteps ends the job in this epoch.
int64_t StepsOfEpoch(const job::StepPlan& plan, const job::Step& step) {
  const int64_t first = step.step - step.step_in_epoch;
  return std::min(plan.steps_per_epoch(), plan.total_steps() - first);
}

}  // namespace

RankReport::RankReport(Options options, const job::Schedule* schedule, base::Clock& clock)
    : options_(std::move(options)), schedule_(schedule), clock_(clock) {
  progress_.set_total_steps(schedule->training().total_steps());
  progress_.set_total_epochs(schedule->training().total_epochs());
  progress_.set_window_bytes(options_.window_bytes);
  progress_.set_window_batches(options_.window_batches);
}

void RankReport::OnStart() {
  const base::MutexLock lock(mutex_);
  started_ = line_.begin = rate_.begin = clock_.Now();
}

void RankReport::OnComputation(const feed::Batch& batch) {
  const base::MutexLock lock(mutex_);
  lives_.OnBegins(batch, clock_.Now());
}

void RankReport::OnBatch(const feed::Batch& batch, const feed::StreamStats& stats) {
  const base::MutexLock lock(mutex_);
  stats_ = stats;
  counters_.set_batches(counters_.batches() + 1);
  counters_.set_samples(counters_.samples() + batch.count());
  counters_.set_bytes(counters_.bytes() + batch.tensor_bytes());
  const bool validation = batch.ticket.split == job::Split::kValidation;
  for (const feed::BadSample& bad : batch.bad_samples) {
    if (!bad_ids_.emplace(validation, bad.sample_id).second) continue;
    v1::BadSampleReport report;
    report.set_sample_id(bad.sample_id);
    report.set_replacement_id(bad.replacement_id);
    const bool first = bad_samples_.size() < head::HeartbeatBuffer::kMaxReasons;
    if (first) report.set_reason(base::ToUtf8(bad.reason, head::kMaxListedText));
    report.set_validation(validation);
    bad_samples_.push_back(std::move(report));
    progress_.set_bad_samples(progress_.bad_samples() + 1);
  }
  if (validation) return;
  lives_.OnUsed(batch, clock_.Now());
  feed::AddToDigest(options_.seed, batch, &own_digest_);
  if (!progress_.digest_covers_job()) {
    progress_.set_digest_high(own_digest_.high());
    progress_.set_digest_low(own_digest_.low());
    progress_.set_samples_consumed(progress_.samples_consumed() + batch.count());
  }
}

void RankReport::OnStep(int64_t step, int64_t samples, double loss, double seconds, bool has_loss) {
  const base::MutexLock lock(mutex_);
  const base::Instant now = clock_.Now();
  const job::Step done = schedule_->training().At(step - 1);
  if (progress_.first_step_unix_ns() == 0) {
    progress_.set_first_step_unix_ns(
        std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count());
  }
  progress_.set_step(step);
  progress_.set_epoch(done.epoch + 1);
  lives_.OnStep(step, seconds, now);
  if (script_) {
    samples = done.slots.count;
    AddScriptTime(now);
    if (script_->loss && script_->loss->first <= step) {
      AddLoss(script_->loss->first, script_->loss->second, script_->step_seconds);
      script_->loss.reset();
    }
  } else if (!progress_.has_phases()) {
    // Phases bring their own, which they sum to.
    progress_.set_train_seconds(base::ToSeconds(now - started_));
  }
  if (options_.on_step_seconds) {
    options_.on_step_seconds(script_ ? script_->step_seconds : seconds);
  }
  if (has_loss && std::isfinite(loss)) AddLoss(step, loss, seconds);
  for (Interval* interval : {&line_, &rate_}) {
    interval->samples += samples;
    interval->steps += 1;
  }
  UpdateRates(now);
  const bool last =
      schedule_->training().IsLastOfEpoch(step - 1) || step == schedule_->training().total_steps();
  if (last || now - line_.begin >= options_.console_interval) PrintLine(done);
}

// Progress has the mean over the epoch so far: the loss of one small last batch says little.
void RankReport::AddLoss(int64_t step, double loss, double seconds) {
  const int64_t epoch = schedule_->training().At(step - 1).epoch;
  if (epoch != loss_epoch_) epoch_loss_ = epoch_steps_ = 0;
  loss_epoch_ = epoch;
  if (std::isfinite(loss)) {
    epoch_loss_ += loss;
    ++epoch_steps_;
    progress_.set_loss(epoch_loss_ / static_cast<double>(epoch_steps_));
  }
  if (options_.rank != 0) return;
  v1::LossPoint point;
  point.set_step(step);
  point.set_loss(loss);
  point.set_seconds_per_step(seconds);
  losses_.Add(point);
}

// What it does between two batches is its own affair, and nothing of it is known here.
void RankReport::AddScriptTime(base::Instant now) {
  script_->step_seconds = base::ToSeconds(now - script_->stepped_at);
  script_->stepped_at = now;
  const double seconds = script_->seconds_before + base::ToSeconds(now - started_);
  const double wait = std::min(seconds, stats_.wait_seconds);
  progress_.set_train_seconds(seconds);
  progress_.mutable_phases()->set_wait(wait);
  progress_.mutable_phases()->set_other(seconds - wait);
}

void RankReport::UpdateRates(base::Instant now) {
  const base::Duration elapsed = now - rate_.begin;
  if (elapsed < kRateInterval && progress_.step() != progress_.total_steps()) return;
  const double seconds = base::ToSeconds(elapsed);
  if (seconds > 0) progress_.set_samples_per_second(rate_.samples / seconds);
  const double train_seconds = progress_.train_seconds();
  if (train_seconds > 0) {
    progress_.set_data_wait_percent(100 * stats_.wait_seconds / train_seconds);
  }
  rate_ = {.begin = now};
}

void RankReport::PrintLine(const job::Step& step) {
  const base::Instant now = clock_.Now();
  const double seconds = base::ToSeconds(now - line_.begin);
  if (options_.print && line_.steps > 0 && seconds > 0) {
    const double rate = line_.samples / seconds;
    const std::string loss =
        progress_.loss() != 0 ? absl::StrFormat(" loss=%.4f", progress_.loss()) : "";
    options_.print(absl::StrFormat(
        "rank=%d epoch=%d step=%d/%d%s samples/s=%.*f wait=%.1f%% step=%.0fms", options_.rank,
        step.epoch + 1, step.step_in_epoch + 1, StepsOfEpoch(schedule_->training(), step), loss,
        rate < 10 ? 2 : 0, rate, 100 * (stats_.wait_seconds - line_.wait_seconds) / seconds,
        1000 * seconds / line_.steps));
  }
  line_ = {.begin = now, .wait_seconds = stats_.wait_seconds};
}

void RankReport::OnSkippedStep() {
  const base::MutexLock lock(mutex_);
  progress_.set_skipped_steps(progress_.skipped_steps() + 1);
}

void RankReport::OnEvaluation(const v1::EvaluationResult& evaluation) {
  const base::MutexLock lock(mutex_);
  // Rates describe training; the evaluation's time belongs to neither side of it.
  line_.begin = rate_.begin = clock_.Now();
  line_.wait_seconds = stats_.wait_seconds;
  if (options_.rank != 0) return;
  AddEvaluation(evaluation);
  if (options_.print) {
    options_.print(absl::StrFormat("evaluation epoch=%d step=%d loss=%.4f accuracy=%.4f samples=%d",
                                   evaluation.epoch(), evaluation.step(), evaluation.loss(),
                                   evaluation.accuracy(), evaluation.samples()));
  }
}

void RankReport::OnJobDigest(const job::StreamDigest& digest, int64_t samples_consumed) {
  const base::MutexLock lock(mutex_);
  progress_.set_digest_covers_job(true);
  progress_.set_digest_high(digest.high());
  progress_.set_digest_low(digest.low());
  progress_.set_samples_consumed(samples_consumed);
}

void RankReport::OnResume(int64_t step, int64_t samples) {
  const base::MutexLock lock(mutex_);
  progress_.set_first_step(step);
  progress_.set_samples_before(samples);
  progress_.set_step(step);
  if (step > 0) progress_.set_epoch(schedule_->training().At(step - 1).epoch + 1);
}

// Rank 0 counts what the whole job had consumed there, the others nothing: the head adds them.
void RankReport::OnScriptPosition(int64_t step, const job::StreamDigest& digest, bool proven) {
  const job::StepPlan& plan = schedule_->training();
  const int64_t epoch_steps = plan.steps_per_epoch();
  int64_t samples = 0;
  if (options_.rank == 0) {
    samples = step % epoch_steps * plan.global_batch();
    if (step >= epoch_steps) {
      const job::SlotRange last = plan.At(epoch_steps - 1).slots;
      samples += step / epoch_steps * (last.first + last.count);
    }
  }
  const base::MutexLock lock(mutex_);
  const bool again = script_.has_value();
  script_ = Script{.seconds_before = progress_.train_seconds()};
  started_ = script_->stepped_at = clock_.Now();
  line_ = rate_ = {.begin = started_, .wait_seconds = stats_.wait_seconds};
  loss_epoch_ = -1;
  own_digest_ = options_.rank == 0 ? digest : job::StreamDigest();
  progress_.set_digest_high(own_digest_.high());
  progress_.set_digest_low(own_digest_.low());
  progress_.set_digest_unproven(!proven);
  progress_.set_samples_consumed(samples);
  progress_.set_samples_before(again ? std::min(progress_.samples_before(), samples) : samples);
  progress_.set_first_step(again ? std::min(progress_.first_step(), step) : step);
  progress_.set_step(step);
  progress_.set_epoch(step > 0 ? plan.At(step - 1).epoch + 1 : 0);
}

void RankReport::AddEvaluation(const v1::EvaluationResult& evaluation) {
  last_evaluation_ = evaluation;
  evaluations_.push_back(evaluation);
  if (evaluations_.size() > head::HeartbeatBuffer::kMaxEvaluations) evaluations_.pop_front();
}

void RankReport::AddAccuracy(int64_t step, double accuracy) {
  if (step <= 0) return;
  const job::StepPlan& plan = schedule_->training();
  v1::EvaluationResult evaluation;
  evaluation.set_epoch(plan.At(step - 1).epoch + (plan.IsLastOfEpoch(step - 1) ? 1 : 0));
  evaluation.set_step(step);
  evaluation.set_loss(std::numeric_limits<double>::quiet_NaN());
  evaluation.set_accuracy(accuracy);
  AddEvaluation(evaluation);
  if (options_.print) options_.print(absl::StrFormat("step=%d accuracy=%.4f", step, accuracy));
}

void RankReport::OnReported(const std::map<std::string, double>& values, int64_t step) {
  const base::MutexLock lock(mutex_);
  auto& reported = *progress_.mutable_reported();
  for (const auto& [name, value] : values) {
    // That the loss is no number any more is what there is to tell.
    if (!std::isfinite(value) && name != "loss") continue;
    if (name != "loss" && name != "accuracy") {
      const bool room = reported.contains(name) || reported.size() < head::kMostReported;
      if (room && name.size() <= head::kMaxReportedName) reported[name] = value;
    } else if (options_.rank != 0 || step <= 0) {
      continue;
    } else if (name == "accuracy") {
      AddAccuracy(step, value);
    } else if (script_ && step > progress_.step()) {
      script_->loss.emplace(step, value);
    } else {
      AddLoss(step, value, script_ ? script_->step_seconds : 0);
    }
  }
}

void RankReport::OnBreak(const std::string& why) {
  const base::MutexLock lock(mutex_);
  progress_.set_last_break(base::ToUtf8(why, head::kMaxText));
}

void RankReport::OnCheckpoint(const std::string& uri, int64_t step) {
  const base::MutexLock lock(mutex_);
  progress_.set_checkpoint_uri(uri);
  progress_.set_checkpoint_step(step);
  progress_.clear_checkpoint_problem();
}

void RankReport::OnCheckpointProblem(const std::string& problem) {
  const base::MutexLock lock(mutex_);
  progress_.set_checkpoint_problem(base::ToUtf8(problem, head::kMaxText));
}

void RankReport::OnNotice(const std::string& line) {
  const base::MutexLock lock(mutex_);
  if (options_.print) options_.print(absl::StrFormat("rank=%d %s", options_.rank, line));
}

void RankReport::OnPhases(const v1::PhaseSeconds& phases, double train_seconds) {
  const base::MutexLock lock(mutex_);
  *progress_.mutable_phases() = phases;
  progress_.set_train_seconds(train_seconds);
}

void RankReport::OnCeiling(double samples_per_second) {
  const base::MutexLock lock(mutex_);
  progress_.set_ceiling_samples_per_second(samples_per_second);
}

// The loop's wait also holds what Next() took without blocking: handing the batch over.
void RankReport::AddWaits() {
  v1::WaitSeconds& waits = *progress_.mutable_waits();
  waits.set_no_worker(stats_.waits.no_worker);
  waits.set_workers(stats_.waits.workers);
  waits.set_transfer(stats_.waits.transfer);
  const double named = stats_.waits.total() - stats_.waits.handover;
  waits.set_handover(std::max(stats_.waits.handover, progress_.phases().wait() - named));
}

v1::Heartbeat RankReport::Take() {
  const base::MutexLock lock(mutex_);
  v1::Heartbeat heartbeat;
  progress_.set_tickets_reissued(stats_.tickets_reissued);
  progress_.set_duplicates_dropped(stats_.duplicates_dropped);
  AddWaits();
  SetProcessCosts(counters_);
  *heartbeat.mutable_counters() = counters_;
  *heartbeat.mutable_progress() = progress_;
  for (const v1::LossPoint& point : losses_.points()) *heartbeat.add_losses() = point;
  for (v1::EvaluationResult& result : evaluations_) heartbeat.add_evaluations()->Swap(&result);
  const auto taken =
      bad_samples_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                 bad_samples_.size(), head::HeartbeatBuffer::kMaxBadSamples));
  for (auto bad = bad_samples_.begin(); bad != taken; ++bad)
    heartbeat.add_bad_samples()->Swap(&*bad);
  losses_ = {};
  evaluations_.clear();
  bad_samples_.erase(bad_samples_.begin(), taken);
  lives_.Take(heartbeat);
  return heartbeat;
}

std::optional<v1::EvaluationResult> RankReport::last_evaluation() const {
  const base::MutexLock lock(mutex_);
  return last_evaluation_;
}

job::StreamDigest RankReport::digest() const {
  const base::MutexLock lock(mutex_);
  return own_digest_;
}

}  // namespace hetero::process
