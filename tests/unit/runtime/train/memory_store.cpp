#include "tests/unit/runtime/train/memory_store.h"

namespace hetero::train {

bool MemoryStore::HasAll(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (!values_.contains(key)) return false;
  }
  return true;
}

absl::Status MemoryStore::Set(const std::string& key, const std::string& value) {
  const base::MutexLock lock(mutex_);
  values_[key] = value;
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::Get(const std::string& key, base::Duration timeout) {
  if (absl::Status status = Wait({key}, timeout); !status.ok()) return status;
  const base::MutexLock lock(mutex_);
  return values_[key];
}

absl::Status MemoryStore::Wait(const std::vector<std::string>& keys, base::Duration timeout) {
  const base::MutexLock lock(mutex_);
  const bool there =
      changed_.WaitUntil(mutex_, base::Clock::Real().Now() + timeout, {},
                         [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasAll(keys); });
  if (there) return absl::OkStatus();
  return absl::DeadlineExceededError("no such key: " + keys.front());
}

absl::StatusOr<bool> MemoryStore::Check(const std::vector<std::string>& keys) {
  const base::MutexLock lock(mutex_);
  return HasAll(keys);
}

absl::StatusOr<int64_t> MemoryStore::Add(const std::string& key, int64_t amount) {
  const base::MutexLock lock(mutex_);
  std::string& value = values_[key];
  const int64_t sum = (value.empty() ? 0 : std::stoll(value)) + amount;
  value = std::to_string(sum);
  changed_.NotifyAll();
  return sum;
}

absl::StatusOr<std::string> MemoryStore::CompareSet(const std::string& key,
                                                    const std::string& expected,
                                                    const std::string& desired) {
  const base::MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end() ? expected.empty() : found->second == expected) {
    values_[key] = desired;
    changed_.NotifyAll();
    return desired;
  }
  return found == values_.end() ? expected : found->second;
}

absl::StatusOr<bool> MemoryStore::Delete(const std::string& key) {
  const base::MutexLock lock(mutex_);
  return values_.erase(key) > 0;
}

absl::StatusOr<int64_t> MemoryStore::CountKeys() {
  const base::MutexLock lock(mutex_);
  return static_cast<int64_t>(values_.size());
}

}  // namespace hetero::train
