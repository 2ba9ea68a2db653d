#include "operator/controller/controller_metrics.h"

namespace hetero::controller {
namespace {

std::vector<double> PassBuckets() {
  return {0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
          0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
          6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
}

metrics::Counter Total(const std::string& controller, metrics::Registry& registry,
                       const std::string& result) {
  return registry.GetCounter("controller_runtime_reconcile_total",
                             "Total number of reconciliations per controller",
                             {{"controller", controller}, {"result", result}});
}

}  // namespace

ControllerMetrics::ControllerMetrics(const std::string& controller, metrics::Registry& registry)
    : success(Total(controller, registry, "success")),
      error(Total(controller, registry, "error")),
      requeue(Total(controller, registry, "requeue")),
      requeue_after(Total(controller, registry, "requeue_after")),
      errors(registry.GetCounter("controller_runtime_reconcile_errors_total",
                                 "Total number of reconciliation errors per controller",
                                 {{"controller", controller}})),
      panics(registry.GetCounter("controller_runtime_reconcile_panics_total",
                                 "Total number of reconciliation panics per controller",
                                 {{"controller", controller}})),
      time(registry.GetHistogram("controller_runtime_reconcile_time_seconds",
                                 "Length of time per reconciliation per controller", PassBuckets(),
                                 {{"controller", controller}})),
      active(registry.GetGauge("controller_runtime_active_workers",
                               "Number of currently used workers per controller",
                               {{"controller", controller}})),
      workers(registry.GetGauge("controller_runtime_max_concurrent_reconciles",
                                "Maximum number of concurrent reconciles per controller",
                                {{"controller", controller}})) {}

}  // namespace hetero::controller
