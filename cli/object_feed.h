#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/kube/watcher.h"

namespace hetero::cli {

// Objects of a kind as they are now: listed, then watched by a thread of its own, until the
// destructor. Thread-safe.
class ObjectFeed {
 public:
  // They outlive it.
  ObjectFeed(kube::Client& client, base::Clock& clock, kube::Watcher::Options options);
  ~ObjectFeed();

  // The first list is complete.
  bool synced() const;
  // Grows with every change.
  int64_t version() const;
  std::vector<nlohmann::json> Objects() const;  // in the order of namespaces and names
  // What came, changed or went since the last call, each as it was last, in that order.
  std::vector<kube::ObjectKey> TakeChanges();
  // Why nothing new comes, and since when; OK: it does.
  std::pair<absl::Status, base::Instant> trouble() const;

 private:
  void Apply(nlohmann::json object);
  void Remove(const kube::ObjectKey& key);
  void EndList();
  void SetTrouble(const absl::Status& status);

  base::Clock& clock_;
  metrics::Registry registry_;
  mutable base::Mutex mutex_;
  std::map<kube::ObjectKey, nlohmann::json> objects_ ABSL_GUARDED_BY(mutex_);
  std::set<kube::ObjectKey> unlisted_ ABSL_GUARDED_BY(mutex_);  // not in the list so far
  std::vector<kube::ObjectKey> changes_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status trouble_ ABSL_GUARDED_BY(mutex_);
  base::Instant trouble_since_ ABSL_GUARDED_BY(mutex_);
  kube::Watcher watcher_;
  std::jthread thread_;  // joined first
};

}  // namespace hetero::cli
