#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/tls.h"

namespace hetero::head {

// A trainer's side of the head's key-value store. Keys are kept apart by generation, so the
// leftovers of an abandoned group are never seen. Every call has a deadline: `timeout` where one is
// given, else 30 s. Errors: kDeadlineExceeded (naming the key or the head), kUnavailable when the
// head cannot be reached. Thread-safe.
class RendezvousClient {
 public:
  static absl::StatusOr<std::unique_ptr<RendezvousClient>> Connect(const std::string& head_address,
                                                                   const base::TlsOptions& tls,
                                                                   int64_t generation,
                                                                   base::Clock& clock);
  virtual ~RendezvousClient() = default;

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
  // Of all generations.
  virtual absl::StatusOr<int64_t> CountKeys() = 0;
};

}  // namespace hetero::head
