#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/kube/client.h"

namespace hetero::kube {

// What the operator keeps of a watched kind: a projection of each object, not the object. One
// writer (its Informer), any readers. Values are immutable snapshots.
template <typename T>
class Store {
 public:
  using Value = std::shared_ptr<const T>;
  // Groups values, for example by the uid of their owner; an empty string leaves a value out of the
  // index.
  using Index = std::function<std::string(const T&)>;

  explicit Store(Index index = nullptr) : index_(std::move(index)) {}

  Value Get(const ObjectKey& key) const;                  // null when absent
  std::vector<Value> In(const std::string& group) const;  // values of one index group, by key
  std::vector<ObjectKey> Keys() const;
  size_t size() const;

  // Writer. Both return what stood there before (null: nothing).
  Value Put(const ObjectKey& key, Value value);
  Value Remove(const ObjectKey& key);

 private:
  mutable std::mutex mutex_;  // guards values_ and groups_
  std::map<ObjectKey, Value> values_;
  std::unordered_map<std::string, std::set<ObjectKey>> groups_;
  Index index_;
};

template <typename T>
typename Store<T>::Value Store<T>::Get(const ObjectKey& key) const {
  std::lock_guard lock(mutex_);
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : it->second;
}

template <typename T>
std::vector<typename Store<T>::Value> Store<T>::In(const std::string& group) const {
  std::lock_guard lock(mutex_);
  std::vector<Value> found;
  auto it = groups_.find(group);
  if (it == groups_.end()) return found;
  for (const ObjectKey& key : it->second) found.push_back(values_.at(key));
  return found;
}

template <typename T>
std::vector<ObjectKey> Store<T>::Keys() const {
  std::lock_guard lock(mutex_);
  std::vector<ObjectKey> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

template <typename T>
size_t Store<T>::size() const {
  std::lock_guard lock(mutex_);
  return values_.size();
}

template <typename T>
typename Store<T>::Value Store<T>::Put(const ObjectKey& key, Value value) {
  std::lock_guard lock(mutex_);
  Value& slot = values_[key];
  Value before = std::exchange(slot, std::move(value));
  if (index_) {
    const std::string group = index_(*slot);
    const std::string old_group = before ? index_(*before) : "";
    if (group != old_group) {
      if (!old_group.empty()) groups_[old_group].erase(key);
      if (!old_group.empty() && groups_[old_group].empty()) groups_.erase(old_group);
      if (!group.empty()) groups_[group].insert(key);
    }
  }
  return before;
}

template <typename T>
typename Store<T>::Value Store<T>::Remove(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  auto it = values_.find(key);
  if (it == values_.end()) return nullptr;
  Value before = std::move(it->second);
  values_.erase(it);
  if (index_) {
    auto group = groups_.find(index_(*before));
    if (group != groups_.end()) {
      group->second.erase(key);
      if (group->second.empty()) groups_.erase(group);
    }
  }
  return before;
}

}  // namespace hetero::kube
