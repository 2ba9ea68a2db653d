#pragma once

#include <string>

#include "base/metrics.h"

namespace hetero::controller {

// What controller-runtime reports of a controller, under its names, labels and buckets.
struct ControllerMetrics {
  ControllerMetrics(const std::string& controller, metrics::Registry& registry);

  metrics::Counter success, error, requeue, requeue_after;  // how passes ended
  metrics::Counter errors, panics;
  metrics::Histogram time;
  metrics::Gauge active, workers;
};

}  // namespace hetero::controller
