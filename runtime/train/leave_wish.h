#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "base/clock.h"

namespace hetero::train {

// A request to this one rank to leave, while the job goes on: its pod is deleted, its node drained.
// Where all ranks are asked, the job is to stop instead; they hear of it one after the other, so
// that a wish has to wait a moment for those of the others. Thread-safe.
class LeaveWish {
 public:
  // How far apart the requests to ranks that are stopped together may come.
  static constexpr base::Duration kTogether = std::chrono::seconds(1);

  // `clock` outlives this.
  LeaveWish(std::stop_token asked, base::Clock& clock);

  bool asked() const { return asked_.stop_requested(); }
  // Whether nobody need be waited for any longer.
  bool insists() const;
  const std::stop_token& token() const { return asked_; }

 private:
  const std::stop_token asked_;
  base::Clock& clock_;
  std::atomic<int64_t> since_{0};  // of the steady clock, in ns; 0: not asked
  std::stop_callback<std::function<void()>> on_asked_;
};

}  // namespace hetero::train
