#include "operator/reconcile/job_log.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/reasons.h"
#include "base/log.h"

namespace hetero::reconcile {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using api::JobStatus;

std::string ReasonOf(const JobStatus& status, ConditionType type) {
  const api::Condition* condition = status.Find(type);
  return condition == nullptr ? "" : condition->reason;
}

std::string MessageOf(const JobStatus& status, ConditionType type) {
  const api::Condition* condition = status.Find(type);
  return condition == nullptr ? "" : condition->message;
}

std::string Since(const JobStatus& status, std::optional<base::WallTime> end) {
  if (!status.start_time || !end) return "0s";
  return ShortDuration(std::chrono::duration_cast<base::Duration>(*end - *status.start_time));
}

int PodsOf(const api::HeteroTrainingJob& job) {
  int pods = 0;
  for (const api::Role& role : job.spec.roles) pods += role.replicas;
  return pods;
}

void LogBeginning(const std::string& key, const plan::ObservedJob& job, const JobStatus& after) {
  const JobStatus& before = job.status;
  if (after.attempt == before.attempt) return;
  if (before.attempt == 0) {
    log::Info("job started", {{"job", key}, {"pods", PodsOf(job.job)}});
  } else if (after.Is(ConditionType::kRestarting)) {
    log::Warning("job restarts", {{"job", key},
                                  {"attempt", after.attempt},
                                  {"reason", ReasonOf(after, ConditionType::kRestarting)},
                                  {"message", MessageOf(after, ConditionType::kRestarting)}});
  } else {
    log::Info("job resumed", {{"job", key}, {"attempt", after.attempt}});
  }
}

void LogRunning(const std::string& key, const JobStatus& before, const JobStatus& after) {
  const api::Condition* was = before.Find(ConditionType::kRunning);
  const api::Condition* is = after.Find(ConditionType::kRunning);
  const bool first = was == nullptr || was->status == ConditionStatus::kUnknown;
  if (first) {
    log::Info("job running", {{"job", key},
                              {"registered", after.registered},
                              {"after", Since(after, is->last_transition_time)}});
  } else {
    log::Info("job running again", {{"job", key}, {"attempt", after.attempt}});
  }
}

void LogEnd(const std::string& key, const JobStatus& after) {
  const std::string duration = Since(after, after.completion_time);
  if (after.Is(ConditionType::kFailed)) {
    log::Warning("job failed", {{"job", key},
                                {"reason", ReasonOf(after, ConditionType::kFailed)},
                                {"message", MessageOf(after, ConditionType::kFailed)},
                                {"duration", duration},
                                {"restarts", after.restarts}});
  } else {
    log::Info("job succeeded",
              {{"job", key}, {"duration", duration}, {"restarts", after.restarts}});
  }
}

}  // namespace

std::string ShortDuration(base::Duration duration) {
  const auto seconds =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  return absl::StrFormat("%dh%02dm", seconds / 3600, seconds / 60 % 60);
}

void LogJobChange(const std::string& key, const plan::ObservedJob& before, const JobStatus& after,
                  const std::vector<plan::Event>& events) {
  const auto became = [&](ConditionType type) { return after.Is(type) && !before.status.Is(type); };
  for (const plan::Event& event : events) {
    if (event.reason == api::event::kPodFailed)
      log::Warning("pod failed", {{"job", key}, {"why", event.note}});
  }
  if (became(ConditionType::kStalled)) {
    log::Warning("job stalled",
                 {{"job", key}, {"message", MessageOf(after, ConditionType::kStalled)}});
  }
  LogBeginning(key, before, after);
  if (became(ConditionType::kSuspended)) log::Info("job suspended", {{"job", key}});
  if (became(ConditionType::kRunning)) LogRunning(key, before.status, after);
  if (after.finished() && !before.status.finished()) LogEnd(key, after);
}

}  // namespace hetero::reconcile
