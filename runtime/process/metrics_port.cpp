#include "runtime/process/metrics_port.h"

#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/process/http_address.h"

namespace hetero::process {
namespace {

// Counters follow totals that are kept elsewhere.
void RaiseTo(metrics::Counter counter, double total) { counter.Add(total - counter.value()); }

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Open(const std::string& address,
                                                               const char* nvml) {
  if (address.empty()) return nullptr;
  HETERO_ASSIGN_OR_RETURN(const HttpAddress parsed, ParseHttpAddress("metrics", address));
  std::unique_ptr<MetricsPort> metrics(new MetricsPort(nvml));
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

void MetricsPort::Update(const v1::Heartbeat& heartbeat) {
  const base::MutexLock lock(mutex_);
  const v1::Counters& counters = heartbeat.counters();
  RaiseTo(registry_.GetCounter("hetero_batches_total", "Batches produced or consumed"),
          counters.batches());
  RaiseTo(registry_.GetCounter("hetero_samples_total", "Samples produced or consumed"),
          counters.samples());
  RaiseTo(registry_.GetCounter("hetero_batch_bytes_total", "Bytes of those batches"),
          counters.bytes());
  RaiseTo(registry_.GetCounter("process_cpu_seconds_total", "CPU time of this process"),
          counters.cpu_seconds());
  registry_.GetGauge("process_peak_resident_memory_bytes", "Largest resident set so far")
      .Set(counters.peak_rss_bytes());
  if (heartbeat.has_progress()) UpdateProgress(heartbeat.progress());
  UpdateGpus();
}

void MetricsPort::UpdateGpus() {
  if (gpus_ == nullptr) return;
  for (const GpuReading& gpu : gpus_->Take()) {
    const metrics::Labels labels = {{"gpu", absl::StrCat(gpu.index)}, {"name", gpu.name}};
    registry_.GetGauge("hetero_gpu_utilization", "Share of the time with a kernel running", labels)
        .Set(gpu.utilization);
    registry_.GetGauge("hetero_gpu_memory_used_bytes", "GPU memory in use", labels)
        .Set(static_cast<double>(gpu.memory_used_bytes));
    registry_.GetGauge("hetero_gpu_memory_total_bytes", "GPU memory", labels)
        .Set(static_cast<double>(gpu.memory_total_bytes));
    registry_.GetGauge("hetero_gpu_power_watts", "Power drawn by the GPU", labels)
        .Set(gpu.power_watts);
    registry_.GetGauge("hetero_gpu_temperature_celsius", "Temperature of the GPU", labels)
        .Set(gpu.temperature_celsius);
  }
}

void MetricsPort::UpdateProgress(const v1::Progress& progress) {
  registry_.GetGauge("hetero_step", "Completed steps").Set(progress.step());
  registry_.GetGauge("hetero_steps_planned", "Steps of the whole job").Set(progress.total_steps());
  registry_.GetGauge("hetero_epoch", "Epochs begun").Set(progress.epoch());
  registry_.GetGauge("hetero_loss", "Loss of the last step").Set(progress.loss());
  registry_.GetGauge("hetero_samples_per_second", "Training rate over the last second")
      .Set(progress.samples_per_second());
  registry_
      .GetGauge("hetero_data_wait_percent", "Share of the training time spent waiting for data")
      .Set(progress.data_wait_percent());
  RaiseTo(registry_.GetCounter("hetero_tickets_reissued_total", "Batches asked for a second time"),
          progress.tickets_reissued());
  RaiseTo(registry_.GetCounter("hetero_bad_samples_total", "Distinct samples that were replaced"),
          progress.bad_samples());
}

void MetricsPort::Update(const v1::JobStatus& status) {
  const base::MutexLock lock(mutex_);
  ready_ = true;
  registry_.GetGauge("hetero_generation", "Generation of the job").Set(status.generation());
  for (const v1::RoleStatus& role : status.roles()) {
    registry_
        .GetGauge("hetero_members_registered", "Members that have joined", {{"role", role.name()}})
        .Set(role.registered());
    registry_.GetGauge("hetero_members_desired", "Members the job needs", {{"role", role.name()}})
        .Set(role.desired());
  }
  if (status.has_progress()) UpdateProgress(status.progress());
}

}  // namespace hetero::process
