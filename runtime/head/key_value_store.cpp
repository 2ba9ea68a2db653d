#include "runtime/head/key_value_store.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hetero::head {

void KeyValueStore::Set(const std::string& key, std::string value) {
  const base::MutexLock lock(mutex_);
  values_[key] = std::move(value);
  changed_.NotifyAll();
}

absl::StatusOr<std::string> KeyValueStore::Get(const std::string& key, const GiveUp& give_up) {
  const base::MutexLock lock(mutex_);
  while (true) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (give_up()) {
      return absl::DeadlineExceededError(absl::StrCat("nobody has set key '", key, "'"));
    }
    changed_.Wait(mutex_);
  }
}

absl::Status KeyValueStore::Wait(const std::vector<std::string>& keys, const GiveUp& give_up) {
  const base::MutexLock lock(mutex_);
  while (const std::string* missing = FindMissing(keys)) {
    if (give_up()) {
      return absl::DeadlineExceededError(absl::StrCat("nobody has set key '", *missing, "'"));
    }
    changed_.Wait(mutex_);
  }
  return absl::OkStatus();
}

bool KeyValueStore::Check(const std::vector<std::string>& keys) const {
  const base::MutexLock lock(mutex_);
  return FindMissing(keys) == nullptr;
}

absl::StatusOr<int64_t> KeyValueStore::Add(const std::string& key, int64_t amount) {
  const base::MutexLock lock(mutex_);
  int64_t value = 0;
  const auto found = values_.find(key);
  if (found != values_.end() && !absl::SimpleAtoi(found->second, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("key '", key, "' does not hold a number"));
  }
  value += amount;
  values_[key] = absl::StrCat(value);
  changed_.NotifyAll();
  return value;
}

std::string KeyValueStore::CompareSet(const std::string& key, const std::string& expected,
                                      const std::string& desired) {
  const base::MutexLock lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!expected.empty()) return expected;
    values_[key] = desired;
  } else if (found->second == expected) {
    found->second = desired;
  } else {
    return found->second;
  }
  changed_.NotifyAll();
  return desired;
}

bool KeyValueStore::Delete(const std::string& key) {
  const base::MutexLock lock(mutex_);
  return values_.erase(key) > 0;
}

int64_t KeyValueStore::CountKeys() const {
  const base::MutexLock lock(mutex_);
  return static_cast<int64_t>(values_.size());
}

void KeyValueStore::Wake() {
  const base::MutexLock lock(mutex_);
  changed_.NotifyAll();
}

const std::string* KeyValueStore::FindMissing(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (!values_.contains(key)) return &key;
  }
  return nullptr;
}

}  // namespace hetero::head
