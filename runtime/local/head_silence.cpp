#include "runtime/local/head_silence.h"

#include <algorithm>

namespace hetero::local {
namespace {

constexpr base::Duration kLeast = std::chrono::seconds(4);
constexpr int kTimesAsPatientAtFirst = 3;
// Looks come fifty times a second, or once a second while requests to the head time out.
constexpr base::Duration kMostPerLook = std::chrono::milliseconds(1500);

}  // namespace

HeadSilence::HeadSilence(int32_t member_timeout_seconds)
    : patience_(
          std::max<base::Duration>(kLeast, 2 * std::chrono::seconds(member_timeout_seconds))) {}

void HeadSilence::Begin(int64_t words) {
  before_ = words_ = words;
  silent_ = base::Duration::zero();
  asked_ = false;
}

base::Duration HeadSilence::limit() const {
  return words_ == before_ ? kTimesAsPatientAtFirst * patience_ : patience_;
}

HeadSilence::Verdict HeadSilence::Look(int64_t words, base::Instant now) {
  const base::Duration gap = looked_ == base::Instant{} ? base::Duration::zero() : now - looked_;
  looked_ = now;
  if (words != words_) {
    words_ = words;
    silent_ = base::Duration::zero();
    asked_ = false;
    return Verdict::kAlive;
  }
  silent_ += std::min(gap, kMostPerLook);
  if (silent_ >= limit()) return Verdict::kHangs;
  if (asked_ || silent_ < limit() / 2) return Verdict::kAlive;
  asked_ = true;
  return Verdict::kAskAgain;
}

}  // namespace hetero::local
