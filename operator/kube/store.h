#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "operator/kube/client.h"

namespace hetero::kube {

// What the operator keeps of a watched kind: a projection of each object, not the object. One
// writer (its Informer), any readers. Values are immutable snapshots.
template <typename T>
class Store {
 public:
  using Value = std::shared_ptr<const T>;
  // Groups values, for example by the uid of their owner; an empty string leaves a value out of the
  // index. Must give the same for the same value each time.
  using Index = std::function<std::string(const T&)>;

  explicit Store(Index index = nullptr) : index_(std::move(index)) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Value Get(const ObjectKey& key) const;                  // null when absent
  std::vector<Value> In(const std::string& group) const;  // values of one index group, by key
  bool Has(const std::string& group) const;               // any of it
  std::vector<ObjectKey> Keys() const;
  size_t size() const;

  // Writer. Both return what stood there before (null: nothing). Putting null removes.
  Value Put(const ObjectKey& key, Value value);
  Value Remove(const ObjectKey& key);

 private:
  using Values = std::map<ObjectKey, Value>;
  using Entry = typename Values::value_type;
  struct ByKey {
    bool operator()(const Entry* a, const Entry* b) const { return a->first < b->first; }
  };

  std::string GroupOf(const Value& value) const {
    return index_ && value != nullptr ? index_(*value) : std::string();
  }
  void Leave(const std::string& group, const Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  Values values_ ABSL_GUARDED_BY(mutex_);
  // Members by their place in values_, so that no key is kept twice.
  std::unordered_map<std::string, std::set<const Entry*, ByKey>> groups_ ABSL_GUARDED_BY(mutex_);
  const Index index_;
};

template <typename T>
typename Store<T>::Value Store<T>::Get(const ObjectKey& key) const {
  const base::MutexLock lock(mutex_);
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : it->second;
}

template <typename T>
std::vector<typename Store<T>::Value> Store<T>::In(const std::string& group) const {
  const base::MutexLock lock(mutex_);
  std::vector<Value> found;
  auto it = groups_.find(group);
  if (it == groups_.end()) return found;
  found.reserve(it->second.size());
  for (const Entry* entry : it->second) found.push_back(entry->second);
  return found;
}

template <typename T>
bool Store<T>::Has(const std::string& group) const {
  const base::MutexLock lock(mutex_);
  const auto it = groups_.find(group);
  return it != groups_.end() && !it->second.empty();
}

template <typename T>
std::vector<ObjectKey> Store<T>::Keys() const {
  const base::MutexLock lock(mutex_);
  std::vector<ObjectKey> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

template <typename T>
size_t Store<T>::size() const {
  const base::MutexLock lock(mutex_);
  return values_.size();
}

template <typename T>
typename Store<T>::Value Store<T>::Put(const ObjectKey& key, Value value) {
  if (value == nullptr) return Remove(key);
  const std::string group = GroupOf(value);
  const base::MutexLock lock(mutex_);
  Entry& entry = *values_.try_emplace(key).first;
  Value before = std::exchange(entry.second, std::move(value));
  const std::string old_group = GroupOf(before);
  if (group == old_group) return before;
  Leave(old_group, &entry);
  if (!group.empty()) groups_[group].insert(&entry);
  return before;
}

template <typename T>
typename Store<T>::Value Store<T>::Remove(const ObjectKey& key) {
  const base::MutexLock lock(mutex_);
  auto it = values_.find(key);
  if (it == values_.end()) return nullptr;
  Leave(GroupOf(it->second), &*it);
  Value before = std::move(it->second);
  values_.erase(it);
  return before;
}

template <typename T>
void Store<T>::Leave(const std::string& group, const Entry* entry) {
  auto members = groups_.find(group);
  if (members == groups_.end()) return;
  members->second.erase(entry);
  if (members->second.empty()) groups_.erase(members);
}

}  // namespace hetero::kube
