#include "operator/controller/controller.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/thread.h"
#include "operator/controller/controller_metrics.h"

namespace hetero::controller {

struct Controller::Impl {
  Impl(Options given, base::Clock& controller_clock, metrics::Registry& registry, Reconcile fn)
      : options(std::move(given)),
        clock(controller_clock),
        metrics(options.name, registry),
        queue(options.name, controller_clock, registry, {}, Shared(options)),
        reconcile(std::move(fn)) {}

  // Slow keys have half of what one group may have, so that they leave some for its others.
  static WorkQueue::Sharing Shared(const Options& options) {
    const int of_one_group = options.group_of == nullptr ? options.workers : options.workers / 2;
    return {.group_of = options.group_of,
            .workers = static_cast<size_t>(std::max(1, options.workers)),
            .slow_at_once = static_cast<size_t>(std::max(1, of_one_group / 2))};
  }

  absl::StatusOr<Result> Call(const std::string& key, std::stop_token stop) {
    try {
      return reconcile(key, std::move(stop));
    } catch (const std::exception& error) {
      metrics.panics.Add();
      return absl::InternalError("bug, please report it: an exception left the reconcile: " +
                                 std::string(error.what()));
    } catch (...) {
      metrics.panics.Add();
      return absl::InternalError("bug, please report it: an exception left the reconcile");
    }
  }

  void HandleError(const std::string& key, const absl::Status& status, bool stopping) {
    metrics.error.Add();
    metrics.errors.Add();
    queue.AddRateLimited(key);
    if (stopping) return;
    const log::Fields fields = {{"controller", options.name},
                                {"key", key},
                                {"failures", queue.Failures(key)},
                                {"error", status.message()}};
    // A conflict is how a stale view shows: every write is guarded so that it may happen.
    if (absl::IsAborted(status)) {
      log::Debug("the object has changed meanwhile; trying again", fields);
    } else if (absl::IsInternal(status)) {
      log::Error("reconcile failed; trying again", fields);
    } else {
      log::Warning("reconcile failed; trying again", fields);
    }
  }

  void HandleResult(const std::string& key, const Result& result) {
    if (!result.requeue_after) {
      queue.Forget(key);
      metrics.success.Add();
    } else if (*result.requeue_after > base::Duration::zero()) {
      queue.Forget(key);
      queue.AddAfter(key, *result.requeue_after);
      metrics.requeue_after.Add();
    } else {
      queue.AddAgain(key);
      metrics.requeue.Add();
    }
  }

  void Process(const std::string& key, const std::stop_token& stop) {
    metrics.active.Add(1);
    const base::Instant started = clock.Now();
    const absl::StatusOr<Result> result = Call(key, stop);
    const base::Duration took = clock.Now() - started;
    metrics.time.Observe(base::ToSeconds(took));
    queue.SetSlow(key, took >= kLongPass);
    if (result.ok()) {
      HandleResult(key, *result);
    } else {
      HandleError(key, result.status(), stop.stop_requested());
    }
    metrics.active.Add(-1);
    queue.Done(key);
  }

  void Work(const std::stop_token& stop) {
    while (const std::optional<std::string> key = queue.Get(stop)) Process(*key, stop);
  }

  Options options;
  base::Clock& clock;
  ControllerMetrics metrics;
  WorkQueue queue;
  Reconcile reconcile;
};

Controller::Controller(Options options, base::Clock& clock, metrics::Registry& registry,
                       Reconcile reconcile)
    : impl_(std::make_unique<Impl>(std::move(options), clock, registry, std::move(reconcile))) {
  impl_->metrics.workers.Set(impl_->options.workers);
}

Controller::~Controller() = default;

WorkQueue& Controller::queue() { return impl_->queue; }

void Controller::Run(std::stop_token stop) {
  std::vector<std::jthread> workers;
  for (int i = 0; i < impl_->options.workers; ++i) {
    workers.emplace_back([this, i, &stop] {
      base::SetThreadName("reconcile " + std::to_string(i));
      impl_->Work(stop);
    });
  }
  for (std::jthread& worker : workers) worker.join();
  impl_->queue.ShutDown();
}

}  // namespace hetero::controller
