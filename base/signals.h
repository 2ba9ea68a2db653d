#pragma once

#include <stop_token>
#include <thread>

namespace hetero::base {

// SIGINT and SIGTERM as stop requests. Construct it first in main(), before any other thread: it
// blocks both signals for the process and waits for them on its own thread.
class SignalStop {
 public:
  SignalStop();
  ~SignalStop();
  // Requested by the first signal.
  std::stop_token first() const { return first_.get_token(); }
  // Requested by the second: the user will not wait.
  std::stop_token second() const { return second_.get_token(); }

 private:
  std::stop_source first_;
  std::stop_source second_;
  std::jthread waiter_;
};

}  // namespace hetero::base
