#include "runtime/process/metrics_port.h"

#include <utility>

#include "base/log.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "runtime/process/head_metrics.h"
#include "runtime/process/http_address.h"
#include "runtime/process/member_metrics.h"

namespace hetero::process {
namespace {

constexpr size_t kMostRules = 64;  // a label of each

double UnixSeconds(base::WallTime time) {
  return base::ToSeconds(std::chrono::duration_cast<base::Duration>(time.time_since_epoch()));
}

}  // namespace

MetricsPort::MetricsPort(base::Clock& clock, const char* nvml)
    : clock_(clock), endpoint_(registry_), gpus_(GpuReadings::Open(nvml)) {
  registry_.GetGauge("process_start_time_seconds", "When this process began, since 1970")
      .Set(UnixSeconds(clock_.WallNow()));
}

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Open(const std::string& address,
                                                               base::Clock& clock,
                                                               const char* nvml) {
  if (address.empty()) return nullptr;
  HETERO_ASSIGN_OR_RETURN(const HttpAddress parsed, ParseHttpAddress("metrics", address));
  std::unique_ptr<MetricsPort> metrics(new MetricsPort(clock, nvml));
  metrics->endpoint_.SetReadiness([raw = metrics.get()] {
    const base::MutexLock lock(raw->mutex_);
    return raw->ready_ ? absl::OkStatus() : absl::UnavailableError("waiting for the job to start");
  });
  HETERO_RETURN_IF_ERROR(metrics->endpoint_.Start(parsed.host, parsed.port));
  log::Info("metrics served", {{"port", metrics->port()}});
  return metrics;
}

void MetricsPort::SetReady() {
  const base::MutexLock lock(mutex_);
  ready_ = true;
}

void MetricsPort::SetOperators(std::vector<std::string> operators) {
  const base::MutexLock lock(mutex_);
  operators_ = std::move(operators);
}

void MetricsPort::SetBudget(double dollars) {
  registry_.GetGauge("hetero_job_budget_dollars", "What the job may cost").Set(dollars);
}

void MetricsPort::UpdateWorker(const v1::Heartbeat& heartbeat) {
  const base::MutexLock lock(mutex_);
  PublishWorker(heartbeat, operators_, registry_);
  UpdateGpus();
}

void MetricsPort::UpdateRank(const v1::Heartbeat& heartbeat) {
  const base::MutexLock lock(mutex_);
  PublishRank(heartbeat, registry_);
  UpdateCheckpoint(heartbeat.progress());
  UpdateGpus();
}

void MetricsPort::ObserveStep(double seconds) { StepSeconds(registry_).Observe(seconds); }

void MetricsPort::UpdateJob(const v1::JobStatus& status) {
  const base::MutexLock lock(mutex_);
  ready_ = true;
  PublishProcess(base::ReadProcessUsage().cpu_seconds, 0, registry_);
  PublishStatus(status, registry_);
  UpdateFindings(status);
}

void MetricsPort::UpdateReport(const insight::Report& report) {
  const base::MutexLock lock(mutex_);
  PublishReport(report, registry_);
}

void MetricsPort::UpdateGpus() {
  if (gpus_ != nullptr) PublishGpus(gpus_->Take(), registry_);
}

// A moment, so that its age is right however seldom somebody asks.
void MetricsPort::UpdateCheckpoint(const v1::Progress& progress) {
  if (progress.checkpoint_step() == checkpoint_step_) return;
  checkpoint_step_ = progress.checkpoint_step();
  registry_.GetGauge("hetero_checkpoint_step", "Steps done in the newest checkpoint of this rank")
      .Set(static_cast<double>(checkpoint_step_));
  registry_
      .GetGauge("hetero_last_checkpoint_timestamp_seconds",
                "When that checkpoint was complete, since 1970")
      .Set(UnixSeconds(clock_.WallNow()));
}

void MetricsPort::UpdateFindings(const v1::JobStatus& status) {
  std::set<std::string> active;
  for (const v1::Finding& finding : status.findings()) {
    if (!rules_.contains(finding.rule()) && rules_.size() == kMostRules) continue;
    rules_.insert(finding.rule());
    if (finding.active()) active.insert(finding.rule());
  }
  for (const std::string& rule : rules_) PublishFinding(rule, active.contains(rule), registry_);
  registry_.GetGauge("hetero_findings_active", "Rules that find something now")
      .Set(static_cast<double>(active.size()));
}

}  // namespace hetero::process
