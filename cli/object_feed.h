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
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status trouble_ ABSL_GUARDED_BY(mutex_);
  base::Instant trouble_since_ ABSL_GUARDED_BY(mutex_);
  kube::Watcher watcher_;
  std::jthread thread_;  // joined first
};

// How the objects of a feed differ from look to look. What happens while it looks is told by this
// look or by the next one. Not thread-safe.
class FeedChanges {
 public:
  struct Change {
    nlohmann::json object;
    bool gone = false;  // the object is what it was last
  };

  // It outlives this.
  explicit FeedChanges(const ObjectFeed& feed) : feed_(feed) {}

  // Since the last call: first what came or changed, then what went, each in the order of
  // namespaces and names. Nothing before the first list is complete. Cheap when nothing happened.
  std::vector<Change> Take();
  // As of the last call.
  const std::map<kube::ObjectKey, nlohmann::json>& objects() const { return objects_; }

 private:
  const ObjectFeed& feed_;
  int64_t version_ = -1;  // of objects_
  std::map<kube::ObjectKey, nlohmann::json> objects_;
};

}  // namespace hetero::cli
