#include "runtime/head/heartbeat_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/member_totals.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

constexpr int kNamedBadSamples = 5;
constexpr int64_t kMostSteps = int64_t{1} << 48;
constexpr double kMostTold = 1e12;  // seconds, dollars
constexpr size_t kMostOrders = 8;

std::string Excess(const BadSampleLog& log, bool validation, int32_t limit, const char* field) {
  const int64_t count = validation ? log.validation() : log.training();
  if (count <= limit) return "";
  return absl::StrCat(count, " bad samples, more than ", field, " (", limit,
                      ") allows: ", log.Describe(validation, kNamedBadSamples),
                      "; repair the dataset or raise the limit");
}

double Plausible(double told) { return told > 0 ? std::min(told, kMostTold) : 0; }  // NaN is not

// Whoever told them: sums of them have to stay numbers that a history may hold.
v1::Counters Plausible(const v1::Counters& told) {
  const auto count = [](int64_t value) { return std::clamp<int64_t>(value, 0, kMostCounted); };
  v1::Counters counters;
  counters.set_batches(count(told.batches()));
  counters.set_samples(count(told.samples()));
  counters.set_bytes(count(told.bytes()));
  counters.set_peak_rss_bytes(count(told.peak_rss_bytes()));
  counters.set_cpu_seconds(Plausible(told.cpu_seconds()));
  counters.set_busy_seconds(Plausible(told.busy_seconds()));
  counters.set_storage_requests(count(told.storage_requests()));
  counters.set_storage_retries(count(told.storage_retries()));
  counters.set_storage_bytes(count(told.storage_bytes()));
  counters.set_storage_dollars(Plausible(told.storage_dollars()));
  counters.set_produce_seconds(Plausible(told.produce_seconds()));
  counters.set_read_seconds(Plausible(told.read_seconds()));
  counters.set_storage_throttled(count(told.storage_throttled()));
  counters.set_storage_seconds(Plausible(told.storage_seconds()));
  return counters;
}

// Of a job whose number of steps is not told yet none is known to be wrong.
bool IsStep(int64_t step, const v1::Progress& progress) {
  return step >= 0 && (progress.total_steps() <= 0 || step <= progress.total_steps());
}

void LimitTexts(v1::Progress& progress) {
  LimitText(kMaxText, *progress.mutable_checkpoint_uri());
  LimitText(kMaxText, *progress.mutable_checkpoint_problem());
  LimitText(kMaxText, *progress.mutable_last_break());
}

// What scripts report, the latest of each name; of several ranks that report one the first's.
void RecordReported(const MemberRecord& member, JobRecord& record) {
  for (const auto& [name, value] : member.progress.reported()) {
    if (name.empty() || name.size() > kMaxReportedName || !std::isfinite(value)) continue;
    const auto known = record.reported.find(name);
    if (known == record.reported.end()) {
      if (record.reported.size() < kMostReported) record.reported[name] = {value, member.rank};
    } else if (member.rank <= known->second.rank) {
      known->second = {value, member.rank};
    }
  }
}

// A rank's totals at one moment, with what its earlier processes had come to before it.
void AddTimePoint(int64_t step, double seconds, const v1::PhaseSeconds& phases,
                  MemberRecord& member) {
  insight::TimePoint point{.step = step,
                           .seconds = seconds + member.earlier_rank.train_seconds,
                           .phases = MakePhases(phases)};
  AddPhases(member.earlier_rank.phases, point.phases);
  member.time_line.Add(point);
}

// The first step of the job, of whichever process. Its time is another machine's: one that cannot
// be, because the clocks differ, gives way to when this head heard of it.
void RecordStartup(const v1::Progress& progress, base::Instant now, JobRecord& record) {
  if (progress.first_step_unix_ns() <= 0) return;
  const auto created =
      std::chrono::duration_cast<std::chrono::nanoseconds>(record.created.time_since_epoch());
  const double heard = AgeAt(record, now);
  double seconds = static_cast<double>(progress.first_step_unix_ns() - created.count()) * 1e-9;
  if (seconds < 0 || seconds > heard) seconds = heard;
  record.startup_seconds = std::min(record.startup_seconds.value_or(seconds), seconds);
}

void RecordRate(base::Instant now, JobRecord& record) {
  const v1::Progress job = JobProgress(record);
  if (job.step() <= 0) return;
  record.rate_curve.Add({.seconds = AgeAt(record, now),
                         .samples_per_second = job.samples_per_second(),
                         .wait_percent = job.data_wait_percent()});
}

// The first word to this head of a process that has worked under another: what it did meanwhile is
// not known, and is not all that it ever did.
bool WorkedElsewhere(const MemberRecord& member) {
  return member.progress.step() == 0 && member.hello.generation() > 0;
}

// By its next word the rank may be as far again from where it is.
void RecordReach(const MemberRecord& member, const v1::Progress& now, JobRecord& record) {
  const auto plausible = [](int64_t step) { return std::clamp<int64_t>(step, 0, kMostSteps); };
  const int64_t step = plausible(now.step());
  const int64_t known = std::max(member.progress.step(), now.first_step());
  const int64_t from = WorkedElsewhere(member) ? step : std::min(step, plausible(known));
  record.reached_step = std::max(record.reached_step, step + (step - from));
}

// Where a process begins is settled with its first step; where a script does, with its first word.
void RecordStepsDone(const MemberRecord& member, const v1::Progress& progress, JobRecord& record) {
  StepsDone& done = record.steps_done;
  const int64_t step = std::clamp<int64_t>(progress.step(), 0, kMostSteps);
  const int64_t first = std::clamp<int64_t>(progress.first_step(), 0, step);
  if (member.rank == 0 && !done.counted && step > first) {
    done.redone += std::max<int64_t>(done.before - first, 0);
    done.furthest = std::min(done.furthest, first);
    done.counted = true;
  } else if (member.rank == 0 && done.counted && record.runs_scripts() &&
             step < member.progress.step()) {
    done.redone += member.progress.step() - step;
    done.furthest = step;
  }
  done.furthest = std::max(done.furthest, step);
}

void RecordOrderCosts(const v1::Heartbeat& heartbeat, JobRecord& record) {
  if (heartbeat.order_costs_size() == 0) return;
  record.order_costs.clear();
  for (const v1::OrderCost& told : heartbeat.order_costs()) {
    if (record.order_costs.size() == kMostOrders) return;
    v1::OrderCost& cost = record.order_costs.emplace_back();
    cost.set_shuffle(told.shuffle());
    LimitText(kMaxListedText, *cost.mutable_shuffle());
    cost.set_requests_per_sample(Plausible(told.requests_per_sample()));
    cost.set_bytes_per_sample(Plausible(told.bytes_per_sample()));
    if (told.has_dollars_per_sample()) {
      cost.set_dollars_per_sample(Plausible(told.dollars_per_sample()));
    }
  }
}

// The same text, or what a history kept of it (history_fit.h).
bool OneIsCut(const std::string& a, const std::string& b) {
  const size_t both = std::min(a.size(), b.size());
  return a.compare(0, both, b, 0, both) == 0;
}

void RecordFault(const v1::FaultReport& report, const std::string& member, base::Instant now,
                 JobRecord& record) {
  const base::WallTime time{std::chrono::duration_cast<base::WallTime::duration>(
      std::chrono::nanoseconds(report.unix_ns()))};
  std::string what = report.what();
  LimitText(kMaxText, what);
  const auto known = std::find_if(record.faults.begin(), record.faults.end(), [&](const Fault& f) {
    return f.time == time && f.member == member && OneIsCut(f.what, what);
  });
  if (known != record.faults.end()) {
    if (what.size() > known->what.size()) known->what = std::move(what);
    if (report.recovery_seconds() > 0) known->recovery_seconds = report.recovery_seconds();
    return;
  }
  if (record.faults.size() >= kMostFaults) {
    ++record.past.faults_left_out;
    return;
  }
  Fault fault{.time = time, .since = now, .what = std::move(what), .member = member, .over = true};
  if (report.recovery_seconds() > 0) fault.recovery_seconds = report.recovery_seconds();
  record.faults.push_back(std::move(fault));
}

// A CPU worker's word about its Python operators, which can do no more than to take a digest away,
// or to end a job that asks for that (spec.verify: Strict).
void TakeDoubt(const std::string& text, JobRecord& record) {
  if (text.empty() || !record.irreproducible.empty() || !api::HasPython(record.job.spec.pipeline)) {
    return;
  }
  record.irreproducible = text;
  LimitText(kMaxListedText, record.irreproducible);
}

void TakeOperatorCosts(const v1::Heartbeat& heartbeat, size_t entries, MemberRecord& member) {
  if (static_cast<size_t>(heartbeat.operator_costs_size()) != entries) return;
  member.operator_costs.clear();
  for (const v1::OperatorCost& told : heartbeat.operator_costs()) {
    v1::OperatorCost& cost = member.operator_costs.emplace_back();
    cost.set_samples(std::clamp<int64_t>(told.samples(), 0, kMostCounted));
    cost.set_cpu_seconds(Plausible(told.cpu_seconds()));
    cost.set_python_seconds(std::min(Plausible(told.python_seconds()), cost.cpu_seconds()));
  }
}

}  // namespace

void RecordHeartbeat(const v1::Heartbeat& heartbeat, MemberRecord& member, Moment now,
                     JobRecord& record) {
  member.use.Take(heartbeat, {.unix_ns = UnixNs(now.wall),
                              .job_seconds = AgeAt(record, now.steady),
                              .tells_lives = member.trainer()});
  record.log_tails.Take(member.name, heartbeat);
  if (heartbeat.has_counters()) member.counters = Plausible(heartbeat.counters());
  if (!member.trainer()) {
    TakeDoubt(heartbeat.irreproducible(), record);
    TakeOperatorCosts(heartbeat, record.job.spec.pipeline.size(), member);
  }
  // What a CPU worker reads comes from outside. One that was taken over must not speak for ranks.
  if (!member.trainer()) return;
  if (heartbeat.has_progress()) {
    RecordReach(member, heartbeat.progress(), record);
    RecordStepsDone(member, heartbeat.progress(), record);
    if (heartbeat.progress().checkpoint_step() > member.progress.checkpoint_step() &&
        !WorkedElsewhere(member)) {
      ++record.checkpoints;
    }
    member.progress = heartbeat.progress();
    LimitTexts(member.progress);
    if (record.runs_scripts()) RecordReported(member, record);
    RecordStartup(member.progress, now.steady, record);
    if (member.rank == 0) RecordRate(now.steady, record);
    if (!member.progress.checkpoint_uri().empty()) {
      record.checkpoint_uri = member.progress.checkpoint_uri();
    }
  }
  for (const v1::TimePoint& point : heartbeat.time_line()) {
    AddTimePoint(point.step(), point.seconds(), point.phases(), member);
  }
  if (heartbeat.progress().has_phases()) {
    AddTimePoint(member.progress.step(), member.progress.train_seconds(), member.progress.phases(),
                 member);
  }
  member.broken_generation = heartbeat.broken_generation();
  for (const v1::LossPoint& point : heartbeat.losses()) {
    if (IsStep(point.step(), member.progress)) record.loss_curve.Add(point);
  }
  for (const v1::EvaluationResult& result : heartbeat.evaluations()) {
    const bool known = std::any_of(record.evaluations.begin(), record.evaluations.end(),
                                   [&](const auto& e) { return e.step() == result.step(); });
    if (!known && IsStep(result.step(), member.progress)) record.evaluations.push_back(result);
  }
  for (const v1::FaultReport& report : heartbeat.faults()) {
    RecordFault(report, member.name, now.steady, record);
  }
  if (heartbeat.placement_size() > 0) {
    record.placement.assign(heartbeat.placement().begin(), heartbeat.placement().end());
  }
  RecordOrderCosts(heartbeat, record);
  for (v1::BadSampleReport sample : heartbeat.bad_samples()) {
    LimitText(kMaxListedText, *sample.mutable_reason());
    record.bad_samples.Add(sample);
  }
}

std::string TooManyBadSamples(const JobRecord& record) {
  const api::Dataset& dataset = record.job.spec.dataset;
  std::string excess =
      Excess(record.bad_samples, false, dataset.max_bad_samples, "spec.dataset.maxBadSamples");
  if (excess.empty() && dataset.validation) {
    excess = Excess(record.bad_samples, true, dataset.validation->max_bad_samples,
                    "spec.dataset.validation.maxBadSamples");
  }
  return excess;
}

}  // namespace hetero::head
