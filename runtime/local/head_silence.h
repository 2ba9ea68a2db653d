#pragma once

#include <cstdint>

#include "base/clock.h"

namespace hetero::local {

// Tells a head that hangs from a launcher that was not running itself. A head says something every
// second, whether or not anything has changed. Its silence is counted only while somebody looks: a
// longer gap between two looks (a suspended machine, a launcher that was stopped) counts as one
// short one. Half way through it is to be asked on another connection. Pure; not thread-safe.
class HeadSilence {
 public:
  enum class Verdict { kAlive, kAskAgain, kHangs };

  // A head hangs after twice the time after which it would call a member lost, at least 4 s; one
  // that has never said anything may still be starting and has three times as long.
  explicit HeadSilence(int32_t member_timeout_seconds);

  // A new head process; `words` have been said by those before it.
  void Begin(int64_t words);
  // At every look: what is to be thought of the head when `words` have been said so far in all.
  // kAskAgain once in each silence.
  Verdict Look(int64_t words, base::Instant now);
  // How long the head may be silent now.
  base::Duration limit() const;

 private:
  const base::Duration patience_;
  int64_t before_ = 0;  // words of earlier heads
  int64_t words_ = 0;   // at the last look
  base::Duration silent_{0};
  bool asked_ = false;
  base::Instant looked_{};  // none yet: the clock's zero
};

}  // namespace hetero::local
