#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "operator/controller/rate_limiter.h"

namespace hetero::controller {

// client-go's rate-limited queue of keys: a key waits at most once (dirty), is never handed to two
// workers at once (processing), and one added meanwhile comes again after Done(). Groups of keys
// take turns, with their slow keys apart from the others; the keys of one come in the order in
// which they were added. Safe from any thread.
class WorkQueue {
 public:
  struct Sharing {
    // Of a key; null: all are of one group, which may have all workers. Must give the same for the
    // same key each time.
    std::function<std::string(const std::string& key)> group_of = nullptr;
    // Who process keys. A group has at most half of those that the other groups leave (but one), so
    // that there is one for a key of another group whatever the first ones wait for.
    size_t workers = std::numeric_limits<size_t>::max();
    // Keys that are slow (SetSlow), of all groups together, that are processed at a time.
    size_t slow_at_once = std::numeric_limits<size_t>::max();
  };
  // Metrics:
  // workqueue_{depth,adds_total,queue_duration_seconds,work_duration_seconds,retries_total,
  // unfinished_work_seconds,longest_running_processor_seconds}{name}.
  WorkQueue(std::string name, base::Clock& clock, metrics::Registry& registry,
            RateLimiter::Options limits, Sharing sharing);
  WorkQueue(std::string name, base::Clock& clock, metrics::Registry& registry,
            RateLimiter::Options limits = {});
  ~WorkQueue();

  void Add(const std::string& key);
  // A key already waiting for a later time comes at the earlier one. Zero or less: now.
  void AddAfter(const std::string& key, base::Duration delay);
  // After a failure: per-key exponential delay and an overall bucket.
  void AddRateLimited(const std::string& key);
  // After a success that asks for another pass at once: the key's own delay alone.
  void AddAgain(const std::string& key);
  // The key's failures are forgiven.
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // The next key; empty after stop or ShutDown(). Follow it by Done().
  std::optional<std::string> Get(std::stop_token stop);
  void Done(const std::string& key);
  // Whether the key's processing takes long, from its next Get() on. Between Get() and Done() only.
  void SetSlow(const std::string& key, bool slow);
  // No more adds; keys already queued are still handed out, delayed ones are not.
  void ShutDown();
  size_t depth() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::controller
