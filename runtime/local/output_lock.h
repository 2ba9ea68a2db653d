#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hetero::local {

// One job at a time may write into an output folder. The kernel lets go of the lock with the
// process, however that ends.
class OutputLock {
 public:
  // Checkpoints may be in the same folder, and have a lock of their own.
  static constexpr char kName[] = ".output-lock";

  // kFailedPrecondition names the folder when another job holds it. `folder` exists.
  static absl::StatusOr<OutputLock> Take(const std::string& folder);
  OutputLock(OutputLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OutputLock& operator=(OutputLock&&) = delete;
  ~OutputLock();

 private:
  explicit OutputLock(int file) : file_(file) {}
  int file_ = -1;  // descriptor; -1: moved from
};

}  // namespace hetero::local
