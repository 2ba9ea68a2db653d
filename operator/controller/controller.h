#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "operator/controller/work_queue.h"

namespace hetero::controller {

// Workers that take keys from a queue and reconcile them. Groups of keys take turns, and one that
// keeps its workers long, as when the calls of a namespace hang, leaves some for the others. Keys
// whose last pass was a long one have at most half of what a group may have. An error puts the key
// back with the queue's rate limit, success forgives it and, when asked, puts it back after a time.
// An exception is a bug of that one key's pass: it is logged, counted and treated as an error.
class Controller {
 public:
  struct Result {
    // Zero or less: at once, but longer each time it is asked for again, so that no key can spin.
    // It takes nothing from the limit that the failures of all keys share.
    std::optional<base::Duration> requeue_after;
  };
  using Reconcile =
      std::function<absl::StatusOr<Result>(const std::string& key, std::stop_token stop)>;
  struct Options {
    std::string name;
    int workers = 16;
    std::function<std::string(const std::string& key)> group_of = nullptr;  // WorkQueue::Sharing
  };
  static constexpr base::Duration kLongPass = std::chrono::seconds(5);
  // Metrics:
  // controller_runtime_reconcile_total{controller,result=success|error|requeue|requeue_after},
  // controller_runtime_reconcile_errors_total, controller_runtime_reconcile_panics_total,
  // controller_runtime_reconcile_time_seconds, controller_runtime_active_workers,
  // controller_runtime_max_concurrent_reconciles.
  Controller(Options options, base::Clock& clock, metrics::Registry& registry, Reconcile reconcile);
  ~Controller();

  WorkQueue& queue();
  // Blocks until stop; then no new key is taken, and running reconciles are waited for. Call once.
  void Run(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::controller
