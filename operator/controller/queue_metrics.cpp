#include "operator/controller/queue_metrics.h"

namespace hetero::controller {
namespace {

metrics::Labels LabelsOf(const std::string& queue) {
  return {{"name", queue}, {"controller", queue}};
}

std::vector<double> Buckets() { return metrics::ExponentialBuckets(10e-9, 10, 12); }

}  // namespace

QueueMetrics::QueueMetrics(const std::string& queue, metrics::Registry& registry)
    : depth(registry.GetGauge("workqueue_depth",
                              "Current depth of workqueue by workqueue and priority",
                              LabelsOf(queue))),
      adds(registry.GetCounter("workqueue_adds_total", "Total number of adds handled by workqueue",
                               LabelsOf(queue))),
      queue_duration(registry.GetHistogram(
          "workqueue_queue_duration_seconds",
          "How long in seconds an item stays in workqueue before being requested", Buckets(),
          LabelsOf(queue))),
      work_duration(
          registry.GetHistogram("workqueue_work_duration_seconds",
                                "How long in seconds processing an item from workqueue takes.",
                                Buckets(), LabelsOf(queue))),
      retries(registry.GetCounter(
          "workqueue_retries_total",
          "Total number of items added to the workqueue with a non-zero delay (rate-limited "
          "requeues, explicit RequeueAfter or AddAfter calls)",
          LabelsOf(queue))),
      unfinished_work(registry.GetGauge(
          "workqueue_unfinished_work_seconds",
          "How many seconds of work has been done that is in progress and hasn't been observed by "
          "work_duration. Large values indicate stuck threads. One can deduce the number of stuck "
          "threads by observing the rate at which this increases.",
          LabelsOf(queue))),
      longest_running(registry.GetGauge(
          "workqueue_longest_running_processor_seconds",
          "How many seconds has the longest running processor for workqueue been running.",
          LabelsOf(queue))) {}

}  // namespace hetero::controller
