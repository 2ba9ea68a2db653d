#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace hetero::head {

// The store in which process groups meet, in memory; semantics are c10d::Store's. Thread-safe.
class KeyValueStore {
 public:
  // Asked after every change and every Wake(); true ends a wait.
  using GiveUp = std::function<bool()>;

  void Set(const std::string& key, std::string value);
  // Waits until the key exists. kDeadlineExceeded names it when `give_up` says so.
  absl::StatusOr<std::string> Get(const std::string& key, const GiveUp& give_up);
  absl::Status Wait(const std::vector<std::string>& keys, const GiveUp& give_up);
  bool Check(const std::vector<std::string>& keys) const;
  // Adds to the decimal number at `key` (absent: 0). kInvalidArgument when it holds something else.
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount);
  // Sets `desired` if the value equals `expected`, or if the key is absent and `expected` is empty.
  // Returns the value afterwards; `expected` when the key is absent still.
  std::string CompareSet(const std::string& key, const std::string& expected,
                         const std::string& desired);
  bool Delete(const std::string& key);
  int64_t CountKeys() const;

  // Lets waiting calls ask whether to give up.
  void Wake();

 private:
  const std::string* FindMissing(const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::head
