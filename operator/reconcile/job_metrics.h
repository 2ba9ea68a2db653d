#pragma once

#include <string>

#include "api/job_status.h"
#include "base/metrics.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// The word for where a job stands: its first condition that is True, as the printer column State
// shows it, or Pending.
std::string StateOf(const api::JobStatus& status);

// hetero_jobs{state}, hetero_job_startup_seconds, hetero_job_restarts_total{scope,reason},
// hetero_job_cost_dollars_total. Nothing
// carries a job's name. Safe from any thread.
class JobMetrics {
 public:
  explicit JobMetrics(metrics::Registry& registry);

  // Moves one job from one state's count to another's; empty: the job is new, or gone.
  void Moved(const std::string& from, const std::string& to);
  // A status write succeeded: counts restarts, dollars, and the time to the first Running.
  void Written(const plan::Observed& observed, const api::JobStatus& written);

 private:
  metrics::Gauge JobsIn(const std::string& state);
  void CountRestarts(const plan::Observed& observed, const api::JobStatus& written);

  metrics::Registry& registry_;
  metrics::Histogram startup_seconds_;
  metrics::Counter cost_dollars_;
};

}  // namespace hetero::reconcile
