#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <stop_token>

#include "base/signals.h"
#include "runtime/program/commands.h"

namespace hetero::commands {

// A command that Ctrl-C stops: at once before it has begun, when there is nothing to leave in order
// and a store may keep it waiting for minutes; then in order; and at once when asked twice.
class StoppableCommand {
 public:
  std::stop_token stop() const { return signals_.first(); }
  // There is something to leave in order from now on. Thread-safe.
  void Begin() { begun_ = true; }

 private:
  using Callback = std::stop_callback<std::function<void()>>;

  const base::SignalStop signals_;
  std::atomic<bool> begun_ = false;
  const Callback before_it_began_{signals_.first(), [this] {
                                    if (!begun_) _exit(kExitStopped);
                                  }};
  const Callback asked_twice_{signals_.second(), [] { _exit(kExitStopped); }};
};

}  // namespace hetero::commands
