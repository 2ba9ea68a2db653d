#include "runtime/storage/aws/renewed_credentials.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace hetero::storage {
namespace {

constexpr base::Duration kMargin = std::chrono::minutes(5);
// What ends within this time may end on its way.
constexpr base::Duration kLeast = std::chrono::seconds(10);
constexpr base::Duration kBetweenTries = std::chrono::seconds(10);
// More than any source takes, with its retries.
constexpr base::Duration kPatience = std::chrono::minutes(1);

}  // namespace

bool RenewedCredentials::IsGoodLocked(base::Duration margin) const {
  if (current_ == nullptr) return false;
  return !current_->expires.has_value() || *current_->expires - clock_.WallNow() > margin;
}

absl::StatusOr<std::shared_ptr<const AwsCredentials>> RenewedCredentials::Get() {
  base::MutexLock lock(mutex_);
  const base::Instant deadline = base::Clock::Real().Now() + kPatience;
  while (true) {
    if (IsGoodLocked(kMargin)) return current_;
    const bool usable = IsGoodLocked(kLeast);
    if (usable && (renewing_ || clock_.Now() < next_try_)) return current_;
    if (!renewing_) break;
    const bool ended =
        renewed_.WaitUntil(mutex_, deadline, {},
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !renewing_; });
    if (!ended) return absl::UnavailableError("renewing the credentials takes too long");
    if (IsGoodLocked(kLeast)) return current_;
    // Else somebody has called the new ones ended already: it is this thread's turn.
    if (!outcome_.ok()) return outcome_;
  }
  renewing_ = true;
  lock.Unlock();
  absl::StatusOr<AwsCredentials> fetched = source_->Fetch();
  lock.Lock();
  renewing_ = false;
  renewed_.NotifyAll();
  outcome_ = fetched.status();
  if (fetched.ok()) {
    current_ = std::make_shared<const AwsCredentials>(*std::move(fetched));
    next_try_ = clock_.Now() + kBetweenTries;  // of those that are short-lived from the start
    if (!IsGoodLocked(kLeast)) {
      outcome_ = absl::UnauthenticatedError(
          "the credentials that were given end at once, or have "
          "ended already; is this machine's clock right?");
      return outcome_;
    }
    return current_;
  }
  next_try_ = clock_.Now() + kBetweenTries;
  if (!IsGoodLocked(kLeast)) return outcome_;
  log::Warning("credentials could not be renewed, the old ones hold on",
               {{"error", std::string(outcome_.message())}});
  return current_;
}

void RenewedCredentials::Expired(const AwsCredentials& credentials) {
  const base::MutexLock lock(mutex_);
  if (current_ != nullptr && current_->access_key_id == credentials.access_key_id &&
      current_->session_token == credentials.session_token) {
    current_ = nullptr;
  }
}

}  // namespace hetero::storage
