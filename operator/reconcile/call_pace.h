#pragma once

#include <chrono>
#include <cstddef>

namespace hetero::reconcile {

// How many calls to the API server one stage has under way at once. It follows how long they take,
// as TCP Vegas follows round trips: calls that take longer the more of them there are wait for each
// other in the server, and calls of small jobs wait behind them there, while as many a second would
// end if fewer were begun. Once a round the number becomes that of calls that are being answered
// and `queued` more. Calls that all take long, as at a slow admission webhook, do not wait for each
// other and lower nothing. Not thread-safe.
class CallPace {
 public:
  using Duration = std::chrono::steady_clock::duration;
  struct Settings {
    size_t most = 50;  // at least 1
    size_t first = 8;  // of the first round; a small job's stage has no other
    size_t queued = 4;
  };

  explicit CallPace(const Settings& settings);

  size_t at_once() const { return at_once_; }
  // A call has ended that took so long. What took almost no time was none, and says nothing.
  void Ended(Duration took);

 private:
  const Settings settings_;
  size_t at_once_;
  Duration fastest_ = Duration::max();
  Duration total_{};  // of this round, which is over after at_once_ calls
  size_t ended_ = 0;  // in this round
};

}  // namespace hetero::reconcile
