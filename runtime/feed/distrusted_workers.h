#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "runtime/feed/worker_address.h"

namespace hetero::feed {

// CPU workers of which a batch was none of this job's. It outlives the streams of a rank, because
// what such a process sees does not change with them. Thread-safe.
class DistrustedWorkers {
 public:
  // What was wrong with the batch; the first word about a process stays.
  void Add(const WorkerAddress& worker, const absl::Status& why) {
    const base::MutexLock lock(mutex_);
    workers_.emplace(std::pair(worker.name, worker.incarnation), why);
  }
  // OK for one that was not added.
  absl::Status Find(const WorkerAddress& worker) const {
    const base::MutexLock lock(mutex_);
    const auto it = workers_.find(std::pair(worker.name, worker.incarnation));
    return it == workers_.end() ? absl::OkStatus() : it->second;
  }

 private:
  mutable base::Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, absl::Status> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::feed
