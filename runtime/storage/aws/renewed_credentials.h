#pragma once

#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/storage/aws/credentials.h"

namespace hetero::storage {

// The credentials of a source for many threads: fetched when they are needed first, and again five
// minutes before they end, once for all. While one thread renews them, and while renewing fails
// (which is then tried every ten seconds), the others go on with the old ones as long as those
// hold. Thread-safe.
class RenewedCredentials {
 public:
  // `clock` outlives it.
  RenewedCredentials(base::Clock& clock, std::unique_ptr<CredentialSource> source)
      : clock_(clock), source_(std::move(source)) {}

  absl::StatusOr<std::shared_ptr<const AwsCredentials>> Get();
  // The server says that these have ended: the next Get() fetches others, unless that was done
  // since.
  void Expired(const AwsCredentials& credentials);

 private:
  bool IsGoodLocked(base::Duration margin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::Clock& clock_;
  const std::unique_ptr<CredentialSource> source_;
  base::Mutex mutex_;
  base::CondVar renewed_;
  std::shared_ptr<const AwsCredentials> current_ ABSL_GUARDED_BY(mutex_);  // null: none yet
  bool renewing_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the renewal that ended last, for those who waited for it.
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);
  base::Instant next_try_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace hetero::storage
