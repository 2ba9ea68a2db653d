#include "runtime/head/heartbeat_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

constexpr int kNamedBadSamples = 5;

std::string Excess(const BadSampleLog& log, bool validation, int32_t limit, const char* field) {
  const int64_t count = validation ? log.validation() : log.training();
  if (count <= limit) return "";
  return absl::StrCat(count, " bad samples, more than ", field, " (", limit,
                      ") allows: ", log.Describe(validation, kNamedBadSamples),
                      "; repair the dataset or raise the limit");
}

void RecordFault(const v1::FaultReport& report, base::Instant now, JobRecord& record) {
  const base::WallTime time{std::chrono::duration_cast<base::WallTime::duration>(
      std::chrono::nanoseconds(report.unix_ns()))};
  const auto known = std::find_if(record.faults.begin(), record.faults.end(), [&](const Fault& f) {
    return f.time == time && f.what == report.what();
  });
  if (known != record.faults.end()) {
    if (report.recovery_seconds() > 0) known->recovery_seconds = report.recovery_seconds();
    return;
  }
  Fault fault{.time = time, .since = now, .what = report.what()};
  if (report.recovery_seconds() > 0) fault.recovery_seconds = report.recovery_seconds();
  record.faults.push_back(std::move(fault));
}

}  // namespace

void RecordHeartbeat(const v1::Heartbeat& heartbeat, MemberRecord& member, base::Instant now,
                     JobRecord& record) {
  if (heartbeat.has_counters()) member.counters = heartbeat.counters();
  if (heartbeat.has_progress()) {
    member.progress = heartbeat.progress();
    if (member.trainer() && member.progress.has_phases()) {
      member.time_line.Add({.step = member.progress.step(),
                            .seconds = member.progress.train_seconds(),
                            .phases = MakePhases(member.progress.phases())});
    }
  }
  member.broken_generation = heartbeat.broken_generation();
  for (const v1::LossPoint& point : heartbeat.losses()) record.loss_curve.Add(point);
  for (const v1::EvaluationResult& result : heartbeat.evaluations()) {
    const bool known = std::any_of(record.evaluations.begin(), record.evaluations.end(),
                                   [&](const auto& e) { return e.step() == result.step(); });
    if (!known) record.evaluations.push_back(result);
  }
  for (const v1::FaultReport& report : heartbeat.faults()) RecordFault(report, now, record);
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
