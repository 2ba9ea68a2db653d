#include "runtime/process/member_metrics.h"

#include "absl/strings/str_cat.h"
#include "base/process_usage.h"

namespace hetero::process {
namespace {

void RaiseTo(metrics::Counter counter, double total) { counter.Add(total - counter.value()); }

struct PartOfTime {  // of a sum that is split by one label
  const char* label;
  double seconds;
};

void PublishCounters(const v1::Counters& counters, metrics::Registry& registry) {
  const auto raise = [&registry](const char* name, const char* help, double total) {
    RaiseTo(registry.GetCounter(name, help), total);
  };
  raise("hetero_batches_total", "Batches made (CPU worker) or consumed (rank)",
        static_cast<double>(counters.batches()));
  raise("hetero_samples_total", "Samples made (CPU worker) or consumed (rank)",
        static_cast<double>(counters.samples()));
  raise("hetero_batch_bytes_total", "Bytes of those batches",
        static_cast<double>(counters.bytes()));
  raise("hetero_storage_requests_total", "Requests to stores behind a network",
        static_cast<double>(counters.storage_requests()));
  raise("hetero_storage_retries_total", "Of the requests, those that repeated one that had failed",
        static_cast<double>(counters.storage_retries()));
  raise("hetero_storage_bytes_total", "Bytes of what those stores replied",
        static_cast<double>(counters.storage_bytes()));
  raise("hetero_storage_dollars_total", "What those requests cost, by the prices of spec.storage",
        counters.storage_dollars());
}

void PublishTimes(const v1::Progress& progress, metrics::Registry& registry) {
  const v1::WaitSeconds& waits = progress.waits();
  for (const auto& [cause, seconds] :
       {PartOfTime{"no_worker", waits.no_worker()}, PartOfTime{"workers", waits.workers()},
        PartOfTime{"transfer", waits.transfer()}, PartOfTime{"handover", waits.handover()}}) {
    RaiseTo(registry.GetCounter("hetero_data_wait_seconds_total",
                                "Time that training waited for data, by cause", {{"cause", cause}}),
            seconds);
  }
  const v1::PhaseSeconds& phases = progress.phases();
  for (const auto& [phase, seconds] :
       {PartOfTime{"wait", phases.wait()}, PartOfTime{"host_to_device", phases.host_to_device()},
        PartOfTime{"forward", phases.forward()}, PartOfTime{"backward", phases.backward()},
        PartOfTime{"all_reduce", phases.all_reduce()}, PartOfTime{"optimizer", phases.optimizer()},
        PartOfTime{"checkpoint", phases.checkpoint()},
        PartOfTime{"evaluation", phases.evaluation()}, PartOfTime{"other", phases.other()}}) {
    RaiseTo(registry.GetCounter("hetero_step_phase_seconds_total",
                                "Time of training, by what it was spent on", {{"phase", phase}}),
            seconds);
  }
  RaiseTo(registry.GetCounter("hetero_training_seconds_total",
                              "Time since the rank asked for its first batch, which the phases sum "
                              "to"),
          progress.train_seconds());
}

void PublishProgress(const v1::Progress& progress, metrics::Registry& registry) {
  const auto set = [&registry](const char* name, const char* help, double value) {
    registry.GetGauge(name, help).Set(value);
  };
  set("hetero_step", "Completed steps", static_cast<double>(progress.step()));
  set("hetero_steps_planned", "Steps of the whole job",
      static_cast<double>(progress.total_steps()));
  set("hetero_epoch", "Epochs begun", static_cast<double>(progress.epoch()));
  set("hetero_loss", "Mean loss over the steps of the current epoch", progress.loss());
  set("hetero_samples_per_second", "Training rate of the whole job over the last second",
      progress.samples_per_second());
  if (progress.ceiling_samples_per_second() > 0) {
    set("hetero_ceiling_samples_per_second", "Rate of the whole job without input, as probed",
        progress.ceiling_samples_per_second());
  }
  set("hetero_data_wait_ratio", "Share of the training time that was spent waiting for data",
      progress.data_wait_percent() / 100);
  set("hetero_checkpoint_problem", "1: the last checkpoint could not be written",
      progress.checkpoint_problem().empty() ? 0 : 1);
  const auto raise = [&registry](const char* name, const char* help, int64_t total) {
    RaiseTo(registry.GetCounter(name, help), static_cast<double>(total));
  };
  raise("hetero_tickets_reissued_total", "Batches asked for a second time",
        progress.tickets_reissued());
  raise("hetero_duplicates_dropped_total", "Batches that came twice and were dropped",
        progress.duplicates_dropped());
  raise("hetero_bad_samples_total", "Distinct samples that were replaced", progress.bad_samples());
  raise("hetero_skipped_steps_total", "Steps whose gradients were not finite",
        progress.skipped_steps());
  PublishTimes(progress, registry);
}

}  // namespace

void PublishProcess(double cpu_seconds, int64_t peak_bytes, metrics::Registry& registry) {
  const base::ProcessUsage usage = base::ReadProcessUsage();
  RaiseTo(registry.GetCounter("process_cpu_seconds_total",
                              "CPU time of this process and of what it has started"),
          cpu_seconds);
  registry.GetGauge("process_resident_memory_bytes", "Memory of this process")
      .Set(static_cast<double>(usage.resident_bytes));
  registry.GetGauge("process_peak_resident_memory_bytes", "The most memory that it has had")
      .Set(static_cast<double>(peak_bytes > 0 ? peak_bytes : usage.peak_resident_bytes));
}

void PublishWorker(const v1::Heartbeat& heartbeat, const std::vector<std::string>& operators,
                   metrics::Registry& registry) {
  const v1::Counters& counters = heartbeat.counters();
  PublishProcess(counters.cpu_seconds(), counters.peak_rss_bytes(), registry);
  PublishCounters(counters, registry);
  RaiseTo(registry.GetCounter("hetero_worker_busy_seconds_total",
                              "Time with at least one batch to make"),
          counters.busy_seconds());
  if (static_cast<size_t>(heartbeat.operator_costs_size()) != operators.size()) return;
  for (size_t entry = 0; entry < operators.size(); ++entry) {
    const v1::OperatorCost& cost = heartbeat.operator_costs(static_cast<int>(entry));
    const metrics::Labels labels = {{"op", operators[entry]}, {"entry", absl::StrCat(entry)}};
    RaiseTo(registry.GetCounter("hetero_operator_samples_total",
                                "Samples whose way through this operator was measured", labels),
            static_cast<double>(cost.samples()));
    RaiseTo(registry.GetCounter("hetero_operator_cpu_seconds_total",
                                "CPU time of this operator for those samples", labels),
            cost.cpu_seconds());
    RaiseTo(registry.GetCounter("hetero_operator_python_seconds_total",
                                "Of that, in interpreters of Python", labels),
            cost.python_seconds());
  }
}

void PublishRank(const v1::Heartbeat& heartbeat, metrics::Registry& registry) {
  const v1::Counters& counters = heartbeat.counters();
  PublishProcess(counters.cpu_seconds(), counters.peak_rss_bytes(), registry);
  PublishCounters(counters, registry);
  if (!heartbeat.has_progress()) return;
  StepSeconds(registry);  // 0 before the first, from which rates count
  PublishProgress(heartbeat.progress(), registry);
}

metrics::Histogram StepSeconds(metrics::Registry& registry) {
  // 1 ms to 131 s, each twice the one before.
  static const std::vector<double>& buckets =
      *new std::vector<double>(metrics::ExponentialBuckets(0.001, 2, 18));
  return registry.GetHistogram("hetero_step_seconds", "Time of one step, waiting for data included",
                               buckets);
}

void PublishGpus(const std::vector<GpuReading>& gpus, metrics::Registry& registry) {
  for (const GpuReading& gpu : gpus) {
    const metrics::Labels labels = {{"gpu", absl::StrCat(gpu.index)}, {"name", gpu.name}};
    const auto set = [&](const char* name, const char* help, double value) {
      registry.GetGauge(name, help, labels).Set(value);
    };
    set("hetero_gpu_utilization_ratio", "Share of the time with a kernel running", gpu.utilization);
    set("hetero_gpu_memory_used_bytes", "GPU memory in use",
        static_cast<double>(gpu.memory_used_bytes));
    set("hetero_gpu_memory_total_bytes", "GPU memory", static_cast<double>(gpu.memory_total_bytes));
    set("hetero_gpu_power_watts", "Power drawn by the GPU", gpu.power_watts);
    set("hetero_gpu_temperature_celsius", "Temperature of the GPU", gpu.temperature_celsius);
  }
}

}  // namespace hetero::process
