#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/storage/writable_store.h"
#include "runtime/train/checkpoint/checkpoint_owner.h"

namespace hetero::train {

// One run at a time may write checkpoints below a store's root. The object ".lock" there names the
// owner, who writes it again every few seconds, each time only over what it wrote before. Nobody
// compares clocks: whoever waits sees it change, or not. Released by the destructor. Thread-safe.
class CheckpointLease {
 public:
  static constexpr base::Duration kLease = std::chrono::seconds(30);

  // Takes over from a process of the same run and from a dead one of this machine at once, from
  // others when they have not written for kLease. kFailedPrecondition names another owner, or says
  // that the server writes whatever the condition; kCancelled on `stop`; other errors are the
  // store's. Each call of `store` ends well within kLease.
  static absl::StatusOr<std::unique_ptr<CheckpointLease>> Take(
      std::unique_ptr<storage::WritableStore> store, const CheckpointOwner& owner,
      base::Clock& clock, std::stop_token stop);
  ~CheckpointLease();
  CheckpointLease(const CheckpointLease&) = delete;
  CheckpointLease& operator=(const CheckpointLease&) = delete;

  // kAborted: another owner has it, or may have by now, because it could not be written for so
  // long. It is held again when it is written before anybody took it.
  absl::Status Check() const;

 private:
  CheckpointLease(std::unique_ptr<storage::WritableStore> store, CheckpointOwner owner,
                  base::Clock& clock);
  // In the place of `old`; null: of nothing.
  absl::Status Write(const storage::Object* old);
  absl::Status CheckConditions();
  void Renew();
  std::string Text(int64_t beat) const;

  const std::unique_ptr<storage::WritableStore> store_;
  const CheckpointOwner owner_;
  const std::string token_;  // of this lease alone
  base::Clock& clock_;
  int64_t beat_ = 0;        // of the beater, once it runs
  storage::Object object_;  // as it was written last

  mutable base::Mutex mutex_;
  base::Instant written_ ABSL_GUARDED_BY(mutex_);  // when the last write that succeeded began
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  bool held_ = false;
  std::jthread beater_;
};

}  // namespace hetero::train
