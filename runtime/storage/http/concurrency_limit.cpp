#include "runtime/storage/http/concurrency_limit.h"

#include <algorithm>

namespace hetero::storage {

ConcurrencyLimit::ConcurrencyLimit(const Options& options)
    : options_(options), limit_(options.initial) {}

void ConcurrencyLimit::Slot::End(Outcome outcome) {
  if (limit_ == nullptr) return;
  limit_->End(halvings_, outcome);
  limit_ = nullptr;
}

ConcurrencyLimit::Slot ConcurrencyLimit::Take(base::Duration patience) {
  const base::MutexLock lock(mutex_);
  const bool free = freed_.WaitUntil(mutex_, base::Clock::Real().Now() + patience, {},
                                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                       return underway_ < static_cast<int>(limit_);
                                     });
  if (!free) return Slot(nullptr, 0);
  ++underway_;
  return Slot(this, halvings_);
}

void ConcurrencyLimit::End(int64_t halvings, Outcome outcome) {
  const base::MutexLock lock(mutex_);
  // What was not in use has not been tried.
  const bool full = underway_ >= static_cast<int>(limit_);
  --underway_;
  if (outcome == Outcome::kGood && full) {
    limit_ = std::min<double>(limit_ + 1 / limit_, options_.most);
  } else if (outcome == Outcome::kSlowDown && halvings == halvings_) {
    limit_ = std::max(limit_ / 2, 1.0);
    ++halvings_;
  }
  // One place is free now, two where the limit has grown by one, and none where it was halved.
  freed_.NotifyOne();
  if (outcome == Outcome::kGood) freed_.NotifyOne();
}

int ConcurrencyLimit::limit() const {
  const base::MutexLock lock(mutex_);
  return static_cast<int>(limit_);
}

int ConcurrencyLimit::underway() const {
  const base::MutexLock lock(mutex_);
  return underway_;
}

}  // namespace hetero::storage
