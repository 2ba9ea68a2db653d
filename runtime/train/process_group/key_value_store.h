#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hetero::train {

// The store in which ranks meet; RendezvousStore (rendezvous_store.h) implements c10d::Store on it.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for the key until `timeout`.
  virtual absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) = 0;
  virtual absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) = 0;
  virtual absl::StatusOr<bool> Check(const std::vector<std::string>& keys) = 0;
  virtual absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) = 0;
  virtual absl::StatusOr<std::string> CompareSet(const std::string& key,
                                                 const std::string& expected,
                                                 const std::string& desired) = 0;
  virtual absl::StatusOr<bool> Delete(const std::string& key) = 0;
  virtual absl::StatusOr<int64_t> CountKeys() = 0;
};

}  // namespace hetero::train
