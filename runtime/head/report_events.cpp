#include "runtime/head/report_events.h"

#include <chrono>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hetero::head {
namespace {

insight::ReportFinding MakeFinding(const v1::Finding& finding) {
  insight::ReportFinding entry{
      .rule = finding.rule(),
      .message = finding.message(),
      .remedy = finding.remedy(),
      .field = finding.field(),
      .member = finding.member(),
      .seconds = finding.seconds(),
      .dollars = {},
      .since = Rfc3339(base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
          std::chrono::nanoseconds(finding.first_unix_ns())))),
      .active = finding.active()};
  if (finding.has_dollars()) entry.dollars = finding.dollars();
  return entry;
}

}  // namespace

std::string StateName(v1::JobStatus::State state) {
  switch (state) {
    case v1::JobStatus::WAITING:
      return "Waiting";
    case v1::JobStatus::RUNNING:
      return "Running";
    case v1::JobStatus::SUCCEEDED:
      return "Succeeded";
    case v1::JobStatus::FAILED:
      return "Failed";
    case v1::JobStatus::STOPPED:
      return "Stopped";
    case v1::JobStatus_State_JobStatus_State_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::JobStatus_State_JobStatus_State_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  std::abort();
}

std::string Rfc3339(base::WallTime time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

void AddEvents(const JobRecord& record, insight::Report& report) {
  for (const Fault& fault : record.faults) {
    report.faults.push_back({.time = Rfc3339(fault.time),
                             .what = fault.what,
                             .recovery_seconds = fault.recovery_seconds});
  }
  if (record.past.faults_left_out > 0) {
    report.faults.push_back({.time = Rfc3339(record.created),
                             .what = absl::StrCat(record.past.faults_left_out,
                                                  " more faults were too many to be remembered")});
  }
  for (const Disruption& disruption : record.disruptions) {
    report.disruptions.push_back({.time = Rfc3339(disruption.time),
                                  .member = disruption.member,
                                  .sign = disruption.sign,
                                  .checkpoint_seconds = disruption.checkpoint_seconds,
                                  .checkpoint_step = disruption.checkpoint_step});
  }
  for (const HeldFinding& held : record.findings) {
    report.findings.push_back(MakeFinding(held.finding));
  }
}

}  // namespace hetero::head
