#pragma once

#include <string>

#include "base/metrics.h"

namespace hetero::controller {

// What controller-runtime reports of a work queue, under its names, labels and buckets.
struct QueueMetrics {
  QueueMetrics(const std::string& queue, metrics::Registry& registry);

  metrics::Gauge depth;
  metrics::Counter adds;
  metrics::Histogram queue_duration;
  metrics::Histogram work_duration;
  metrics::Counter retries;
  metrics::Gauge unfinished_work;
  metrics::Gauge longest_running;
};

}  // namespace hetero::controller
