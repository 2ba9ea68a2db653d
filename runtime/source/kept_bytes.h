#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace hetero::source {

// Bytes that cost something to make, of which those that were used last are kept. Thread-safe.
//
// A child that fork() made keeps nothing, and takes no lock of this class.
class KeptBytes {
 public:
  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

  explicit KeptBytes(int64_t most_bytes);

  // Those of this name, else what `make` gives. It is called without a lock, so that others are
  // made meanwhile; so may be the same ones.
  absl::StatusOr<Bytes> Find(const std::string& name,
                             absl::FunctionRef<absl::StatusOr<Bytes>()> make)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Kept {
    std::string name;
    Bytes bytes;
  };

  void Keep(const std::string& name, const Bytes& bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int process_;
  const int64_t most_bytes_;
  base::Mutex mutex_;
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the one that was used last in front
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hetero::source
