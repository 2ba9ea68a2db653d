#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/train/checkpoint/checkpoint_owner.h"

namespace hetero::train {

// One run at a time may write into a checkpoint folder. The file ".lock" in it names the owner; on
// one machine the kernel's file lock tells whether that one still lives, across machines a counter
// that the owner raises every two seconds. Released by the destructor, and by the kernel when the
// process dies. Thread-safe.
class CheckpointLock {
 public:
  using Owner = CheckpointOwner;

  // Waits up to ten seconds for another owner to go, and thirty for one of this machine that shows
  // no sign of life. kFailedPrecondition names it; kCancelled on `stop`; other errors name the file
  // and the system's reason. `folder` exists.
  static absl::StatusOr<std::unique_ptr<CheckpointLock>> Take(const std::string& folder,
                                                              const Owner& owner,
                                                              base::Clock& clock,
                                                              std::stop_token stop);
  ~CheckpointLock();
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;

 private:
  CheckpointLock(int file, const Owner& owner, base::Clock& clock);
  void Write(int64_t beat);

  const int file_;
  const Owner owner_;
  std::jthread beater_;
};

// This machine's name for CheckpointLock::Owner.
std::string ThisHost();

}  // namespace hetero::train
