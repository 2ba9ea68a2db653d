#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hetero::train {

// The store in which the ranks of one generation meet; RendezvousStore (rendezvous_store.h)
// implements c10d::Store on it. Errors are the store's own, but for kDeadlineExceeded.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for the key; kDeadlineExceeded when it does not come before `timeout`.
  virtual absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) = 0;
  // The same for all `keys`.
  virtual absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) = 0;
  // Whether all `keys` are there.
  virtual absl::StatusOr<bool> Check(const std::vector<std::string>& keys) = 0;
  // Adds to the number under `key`, 0 when there is none, and returns the sum.
  virtual absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) = 0;
  // Replaces `expected` by `desired`; an empty `expected` stands for no value too. Returns the
  // value that is there then, or `expected` when there is none.
  virtual absl::StatusOr<std::string> CompareSet(const std::string& key,
                                                 const std::string& expected,
                                                 const std::string& desired) = 0;
  // Whether the key was there.
  virtual absl::StatusOr<bool> Delete(const std::string& key) = 0;
  virtual absl::StatusOr<int64_t> CountKeys() = 0;
};

}  // namespace hetero::train
