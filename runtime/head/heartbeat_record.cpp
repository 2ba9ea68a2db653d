#include "runtime/head/heartbeat_record.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/member_totals.h"

namespace hetero::head {
namespace {

constexpr int kNamedBadSamples = 5;
constexpr int64_t kMostSteps = int64_t{1} << 48;

std::string Excess(const BadSampleLog& log, bool validation, int32_t limit, const char* field) {
  const int64_t count = validation ? log.validation() : log.training();
  if (count <= limit) return "";
  return absl::StrCat(count, " bad samples, more than ", field, " (", limit,
                      ") allows: ", log.Describe(validation, kNamedBadSamples),
                      "; repair the dataset or raise the limit");
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

// By its next word the rank may be as far again from where it is.
void RecordReach(const v1::Progress& before, const v1::Progress& now, JobRecord& record) {
  const auto plausible = [](int64_t step) { return std::clamp<int64_t>(step, 0, kMostSteps); };
  const int64_t step = plausible(now.step());
  const int64_t from = std::min(step, plausible(std::max(before.step(), now.first_step())));
  record.reached_step = std::max(record.reached_step, step + (step - from));
}

void RecordFault(const v1::FaultReport& report, const std::string& member, base::Instant now,
                 JobRecord& record) {
  const base::WallTime time{std::chrono::duration_cast<base::WallTime::duration>(
      std::chrono::nanoseconds(report.unix_ns()))};
  const auto known = std::find_if(record.faults.begin(), record.faults.end(), [&](const Fault& f) {
    return f.time == time && f.what == report.what();
  });
  if (known != record.faults.end()) {
    if (report.recovery_seconds() > 0) known->recovery_seconds = report.recovery_seconds();
    return;
  }
  Fault fault{.time = time, .since = now, .what = report.what(), .member = member, .over = true};
  if (report.recovery_seconds() > 0) fault.recovery_seconds = report.recovery_seconds();
  record.faults.push_back(std::move(fault));
}

}  // namespace

void RecordHeartbeat(const v1::Heartbeat& heartbeat, MemberRecord& member, base::Instant now,
                     JobRecord& record) {
  if (heartbeat.has_counters()) member.counters = heartbeat.counters();
  if (heartbeat.has_progress()) {
    RecordReach(member.progress, heartbeat.progress(), record);
    member.progress = heartbeat.progress();
    RecordStartup(member.progress, now, record);
    if (!member.progress.checkpoint_uri().empty()) {
      record.checkpoint_uri = member.progress.checkpoint_uri();
    }
  }
  if (member.trainer()) {
    for (const v1::TimePoint& point : heartbeat.time_line()) {
      AddTimePoint(point.step(), point.seconds(), point.phases(), member);
    }
    if (heartbeat.progress().has_phases()) {
      AddTimePoint(member.progress.step(), member.progress.train_seconds(),
                   member.progress.phases(), member);
    }
  }
  member.broken_generation = heartbeat.broken_generation();
  for (const v1::LossPoint& point : heartbeat.losses()) record.loss_curve.Add(point);
  for (const v1::EvaluationResult& result : heartbeat.evaluations()) {
    const bool known = std::any_of(record.evaluations.begin(), record.evaluations.end(),
                                   [&](const auto& e) { return e.step() == result.step(); });
    if (!known) record.evaluations.push_back(result);
  }
  for (const v1::FaultReport& report : heartbeat.faults()) {
    RecordFault(report, member.name, now, record);
  }
  if (heartbeat.placement_size() > 0) {
    record.placement.assign(heartbeat.placement().begin(), heartbeat.placement().end());
  }
  for (const v1::BadSampleReport& sample : heartbeat.bad_samples()) record.bad_samples.Add(sample);
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
