#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "operator/kube/store.h"
#include "operator/kube/watcher.h"

namespace hetero::kube {

// Keeps a Store in step with the API server through a Watcher. After a relist, keys that vanished
// are removed and announced as such. An object whose projection throws stays as it was known, for
// one odd object must not end the process again and again; it is logged and counted in
// reflector_unreadable_objects_total{name}. An object that was deleted and made again unseen is
// announced as a change: whoever cares compares uids.
template <typename T>
class Informer {
 public:
  using Value = typename Store<T>::Value;
  // What to keep of an object; `previous` (may be null) is what is kept now, so that expensive
  // parts can be shared; returning it says that nothing has changed, and nobody is told. Null:
  // leave the object out.
  using Project = std::function<Value(const nlohmann::json& object, const Value& previous)>;
  // After the store has changed. `now` is null for a removal, `before` for an addition. Runs on the
  // informer's thread.
  using OnChange = std::function<void(const ObjectKey& key, const Value& before, const Value& now)>;

  Informer(Client& client, base::Clock& clock, metrics::Registry& registry,
           Watcher::Options options, Project project, OnChange on_change,
           typename Store<T>::Index index = nullptr,
           base::Backoff::Random random = base::Backoff::SystemRandom())
      : kind_(options.resource.plural),
        unreadable_(registry.GetCounter("reflector_unreadable_objects_total",
                                        "Objects that could not be taken in, by kind.",
                                        {{"name", kind_}})),
        store_(std::move(index)),
        project_(std::move(project)),
        on_change_(std::move(on_change)),
        watcher_(client, clock, registry, std::move(options),
                 {.list_begins = [this] { BeginList(); },
                  .apply = [this](nlohmann::json object) { Apply(std::move(object)); },
                  .remove = [this](nlohmann::json object) { Remove(ObjectKey::Of(object)); },
                  .list_ends = [this] { EndList(); },
                  .absent = [this] { EndWithout(); }},
                 std::move(random)) {}

  // Blocks until stop.
  void Run(std::stop_token stop) { watcher_.Run(stop); }
  // The first list is complete, and stays so. Safe from any thread.
  bool synced() const { return synced_; }
  // The server knows the kind; of one that is optional it may not. Safe from any thread.
  bool served() const { return served_; }
  const Store<T>& store() const { return store_; }

 private:
  void BeginList() {
    const std::vector<ObjectKey> keys = store_.Keys();
    unlisted_ = std::set<ObjectKey>(keys.begin(), keys.end());
  }
  void Apply(nlohmann::json object) {
    const ObjectKey key = ObjectKey::Of(object);
    if (key.name.empty()) return;  // not an object
    const Value known = store_.Get(key);
    Value now;
    try {
      now = project_(object, known);
    } catch (const std::exception& error) {
      unlisted_.erase(key);
      unreadable_.Add();
      log::Error("bug, please report it: an object cannot be read; it stays as it was known",
                 {{"kind", kind_}, {"object", key.ToString()}, {"what", error.what()}});
      return;
    }
    object = nullptr;  // frees it before others are told: it is much larger than what is kept
    if (now == nullptr) return Remove(key);
    unlisted_.erase(key);
    if (now == known) return;
    const Value before = store_.Put(key, now);
    on_change_(key, before, now);
  }
  void Remove(const ObjectKey& key) {
    unlisted_.erase(key);
    if (const Value before = store_.Remove(key)) on_change_(key, before, nullptr);
  }
  void EndList() {
    const std::set<ObjectKey> vanished = std::exchange(unlisted_, {});
    served_ = true;
    for (const ObjectKey& key : vanished) Remove(key);
    synced_ = true;
  }
  // What was known of it stays known until the next list: rights may come back.
  void EndWithout() {
    unlisted_.clear();
    served_ = false;
    synced_ = true;
  }

  const std::string kind_;
  metrics::Counter unreadable_;
  Store<T> store_;
  Project project_;
  OnChange on_change_;
  // While listing: keys known before it that it has not named so far. Informer's thread only.
  std::set<ObjectKey> unlisted_;
  std::atomic<bool> synced_ = false;
  std::atomic<bool> served_ = false;
  Watcher watcher_;
};

}  // namespace hetero::kube
