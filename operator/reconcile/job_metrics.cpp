#include "operator/reconcile/job_metrics.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "api/reasons.h"

namespace hetero::reconcile {
namespace {

constexpr char kPending[] = "Pending";

// The reasons that get a count of their own: a container may end with any word.
std::string ReasonOf(const plan::ObservedPod& pod) {
  if (pod.disrupted) return api::failure::kDisruption;
  for (const char* known :
       {"OOMKilled", "Evicted", api::failure::kNodeLost, "Preempting", api::failure::kError}) {
    if (pod.reason == known) return known;
  }
  return "Other";
}

}  // namespace

std::string StateOf(const api::JobStatus& status) {
  for (int i = 0; i < api::kConditionTypes; ++i) {
    const auto type = static_cast<api::ConditionType>(i);
    if (status.Is(type)) return std::string(api::NameOf(type));
  }
  return kPending;
}

JobMetrics::JobMetrics(metrics::Registry& registry)
    : registry_(registry),
      startup_seconds_(registry.GetHistogram("hetero_job_startup_seconds",
                                             "From a job's start to its first Running.",
                                             metrics::ExponentialBuckets(0.5, 2, 12))),
      cost_dollars_(registry.GetCounter("hetero_job_cost_dollars_total",
                                        "What jobs have cost, as their status says.")) {
  for (int i = 0; i < api::kConditionTypes; ++i) {
    JobsIn(std::string(api::NameOf(static_cast<api::ConditionType>(i)))).Set(0);
  }
  JobsIn(kPending).Set(0);
}

metrics::Gauge JobMetrics::JobsIn(const std::string& state) {
  return registry_.GetGauge("hetero_jobs", "Jobs by state.", {{"state", state}});
}

void JobMetrics::Moved(const std::string& from, const std::string& to) {
  if (from == to) return;
  if (!from.empty()) JobsIn(from).Add(-1);
  if (!to.empty()) JobsIn(to).Add(1);
}

void JobMetrics::Written(const plan::Observed& observed, const api::JobStatus& written) {
  const api::JobStatus& before = observed.job->status;
  const api::Condition* was = before.Find(api::ConditionType::kRunning);
  const api::Condition* is = written.Find(api::ConditionType::kRunning);
  const bool never_ran = was == nullptr || was->status == api::ConditionStatus::kUnknown;
  if (never_ran && written.Is(api::ConditionType::kRunning) && written.start_time) {
    startup_seconds_.Observe(base::ToSeconds(is->last_transition_time - *written.start_time));
  }
  CountRestarts(observed, written);
  const double paid = before.cost ? before.cost->dollars : 0;
  if (written.cost && written.cost->dollars > paid) cost_dollars_.Add(written.cost->dollars - paid);
}

void JobMetrics::CountRestarts(const plan::Observed& observed, const api::JobStatus& written) {
  const api::JobStatus& before = observed.job->status;
  if (written.finished() || before.attempt == 0 || before.Is(api::ConditionType::kSuspended)) {
    return;
  }
  const bool gang = written.attempt > before.attempt;
  const auto count = [&](const std::string& reason) {
    registry_
        .GetCounter("hetero_job_restarts_total", "Restarts of pods (Pod) and of whole jobs (Gang).",
                    {{"scope", gang ? "Gang" : "Pod"}, {"reason", reason}})
        .Add();
  };
  bool counted = false;
  for (const std::string& uid : written.uncounted) {
    const auto& old = before.uncounted;
    if (std::find(old.begin(), old.end(), uid) != old.end() || (gang && counted)) continue;
    const auto pod = std::find_if(observed.pods.begin(), observed.pods.end(),
                                  [&uid](const auto& candidate) { return candidate->uid == uid; });
    count(pod == observed.pods.end() ? "Other" : ReasonOf(**pod));
    counted = true;
  }
  if (gang && !counted)
    count(before.Is(api::ConditionType::kStalled) ? api::reason::kStalled : "Other");
}

}  // namespace hetero::reconcile
