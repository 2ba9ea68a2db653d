#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "operator/kube/store.h"
#include "operator/kube/watcher.h"

namespace hetero::kube {

// Keeps a Store in step with the API server through a Watcher. After a relist, keys that vanished
// are removed and announced as such.
template <typename T>
class Informer {
 public:
  using Value = typename Store<T>::Value;
  // What to keep of an object; `previous` (may be null) is what is kept now, so that expensive
  // parts can be shared. Null: leave the object out.
  using Project = std::function<Value(const nlohmann::json& object, const Value& previous)>;
  // After the store has changed. `now` is null for a removal, `before` for an addition. Runs on the
  // informer's thread.
  using OnChange = std::function<void(const ObjectKey& key, const Value& before, const Value& now)>;

  Informer(Client& client, base::Clock& clock, metrics::Registry& registry,
           Watcher::Options options, Project project, OnChange on_change,
           typename Store<T>::Index index = nullptr)
      : store_(std::move(index)),
        project_(std::move(project)),
        on_change_(std::move(on_change)),
        watcher_(client, clock, registry, std::move(options),
                 {.list_begins =
                      [this] {
                        listed_.clear();
                        listing_ = true;
                      },
                  .apply = [this](nlohmann::json object) { Apply(std::move(object)); },
                  .remove = [this](nlohmann::json object) { Remove(ObjectKey::Of(object)); },
                  .list_ends = [this] { EndList(); }}) {}

  // Blocks until stop.
  void Run(std::stop_token stop) { watcher_.Run(stop); }
  // The first list is complete. Safe from any thread.
  bool synced() const { return synced_; }
  const Store<T>& store() const { return store_; }

 private:
  void Apply(nlohmann::json object) {
    const ObjectKey key = ObjectKey::Of(object);
    Value now = project_(object, store_.Get(key));
    if (now == nullptr) return Remove(key);
    if (listing_) listed_.insert(key);
    Value before = store_.Put(key, now);
    on_change_(key, before, now);
  }
  void Remove(const ObjectKey& key) {
    if (Value before = store_.Remove(key)) on_change_(key, before, nullptr);
  }
  void EndList() {
    listing_ = false;
    for (const ObjectKey& key : store_.Keys()) {
      if (!listed_.contains(key)) Remove(key);
    }
    listed_.clear();
    synced_ = true;
  }

  Store<T> store_;
  Project project_;
  OnChange on_change_;
  bool listing_ = false;        // informer's thread only
  std::set<ObjectKey> listed_;  // informer's thread only
  std::atomic<bool> synced_ = false;
  Watcher watcher_;
};

}  // namespace hetero::kube
