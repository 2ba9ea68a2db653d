#include "base/signals.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/thread.h"

namespace hetero::base {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

SignalStop::SignalStop() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // A parent may have passed on that it does not want to hear of its children; we wait for ours.
  signal(SIGCHLD, SIG_DFL);
  waiter_ = std::jthread([this](std::stop_token done) {
    SetThreadName("signals");
    const sigset_t signals = StopSignals();
    const timespec poll = {.tv_sec = 0, .tv_nsec = 100'000'000};
    while (!done.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &poll) < 0) continue;
      if (!first_.request_stop()) second_.request_stop();
    }
  });
}

SignalStop::~SignalStop() = default;

}  // namespace hetero::base
