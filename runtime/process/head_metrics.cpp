#include "runtime/process/head_metrics.h"

#include <cmath>
#include <map>

namespace hetero::process {
namespace {

struct StateName {
  v1::JobStatus::State state;
  const char* name;  // as in the job's report
};
constexpr StateName kStates[] = {{v1::JobStatus::WAITING, "Waiting"},
                                 {v1::JobStatus::RUNNING, "Running"},
                                 {v1::JobStatus::SUCCEEDED, "Succeeded"},
                                 {v1::JobStatus::FAILED, "Failed"},
                                 {v1::JobStatus::STOPPED, "Stopped"}};

// Not counters: the ranks that they are of may change, and with them the sums.
void PublishJobProgress(const v1::Progress& progress, metrics::Registry& registry) {
  const auto set = [&registry](const char* name, const char* help, double value) {
    registry.GetGauge(name, help).Set(value);
  };
  set("hetero_job_step", "Completed steps", static_cast<double>(progress.step()));
  set("hetero_job_steps_planned", "Steps of the whole job",
      static_cast<double>(progress.total_steps()));
  set("hetero_job_epoch", "Epochs begun", static_cast<double>(progress.epoch()));
  set("hetero_job_samples_consumed", "Samples that the job was trained on",
      static_cast<double>(progress.samples_consumed()));
  set("hetero_job_loss", "Mean loss over the steps of the current epoch", progress.loss());
  set("hetero_job_samples_per_second", "Training rate over the last second",
      progress.samples_per_second());
  set("hetero_job_data_wait_ratio",
      "Share of the training time that the rank which waited most has waited for data",
      progress.data_wait_percent() / 100);
  set("hetero_job_bad_samples", "Distinct samples that were replaced",
      static_cast<double>(progress.bad_samples()));
  set("hetero_job_skipped_steps", "Steps whose gradients were not finite",
      static_cast<double>(progress.skipped_steps()));
}

}  // namespace

void PublishStatus(const v1::JobStatus& status, metrics::Registry& registry) {
  for (const StateName& state : kStates) {
    registry.GetGauge("hetero_job_state", "1 for the state of the job", {{"state", state.name}})
        .Set(status.state() == state.state ? 1 : 0);
  }
  registry.GetGauge("hetero_generation", "How often the ranks have come together")
      .Set(static_cast<double>(status.generation()));
  for (const v1::RoleStatus& role : status.roles()) {
    const metrics::Labels labels = {{"role", role.name()}};
    registry.GetGauge("hetero_members_desired", "Members that the job needs", labels)
        .Set(role.desired());
    registry.GetGauge("hetero_members_registered", "Members that have joined", labels)
        .Set(role.registered());
  }
  for (const v1::RoleSizing& role : status.sizing()) {
    registry
        .GetGauge("hetero_members_needed", "CPU workers that the measured rates call for",
                  {{"role", role.role()}})
        .Set(role.needed_replicas());
  }
  if (status.has_progress()) PublishJobProgress(status.progress(), registry);
  registry.GetGauge("hetero_job_remaining_seconds", "Time to the end at this rate; 0: not known")
      .Set(status.eta_seconds());
}

void PublishFinding(const std::string& rule, bool active, metrics::Registry& registry) {
  registry.GetGauge("hetero_findings", "1: the rule finds something now", {{"rule", rule}})
      .Set(active ? 1 : 0);
}

void PublishReport(const insight::Report& report, metrics::Registry& registry) {
  if (report.accuracy && std::isfinite(*report.accuracy)) {
    registry.GetGauge("hetero_job_accuracy_ratio", "Accuracy of the newest evaluation")
        .Set(*report.accuracy);
  }
  if (report.cost_dollars) {
    registry
        .GetGauge("hetero_job_spent_dollars", "What the job has cost, by pricePerHour of its roles")
        .Set(*report.cost_dollars);
  }
  metrics::Counter faults =
      registry.GetCounter("hetero_faults_total", "Faults that the head has seen");
  faults.Add(static_cast<double>(report.faults.size()) - faults.value());
  std::map<std::string, int64_t> restarts;
  for (const insight::ReportWorker& worker : report.workers) {
    restarts[worker.role] += worker.restarts;
  }
  for (const auto& [role, count] : restarts) {
    metrics::Counter counter =
        registry.GetCounter("hetero_member_restarts_total",
                            "Members whose process another one has replaced", {{"role", role}});
    counter.Add(static_cast<double>(count) - counter.value());
  }
}

}  // namespace hetero::process
