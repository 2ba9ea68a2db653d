#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace hetero::feed {

// What this host's own cores do while CPU workers can serve.
enum class LocalShare {
  kLastResort,  // nothing: they serve only what no worker can
  kBalanced,    // their share by measured rate, where they are idle and the workers do not keep up
};

// Decides when the own cores serve beside the workers; who of them gets which ticket is then the
// window's matter, which knows all rates. The own threads run at idle priority, so their rate is
// what training leaves over.
//
// They begin when training waits for data, and end when the workers alone could do more than
// training takes. A batch of theirs for which training had to wait shows that the cores are not
// idle after all: they rest, each time for twice as long. Pure; not thread-safe.
class LocalShareRule {
 public:
  static constexpr base::Duration kLook = std::chrono::seconds(1);
  static constexpr double kWaits = 0.05;  // of the time: the workers do not keep up
  static constexpr double kEnough = 1.1;  // the workers' rate over what training takes
  static constexpr int kEnoughLooks = 3;  // in a row
  static constexpr base::Duration kFirstRest = std::chrono::seconds(2);
  static constexpr base::Duration kLongestRest = std::chrono::seconds(60);

  struct View {
    double waited = 0;       // seconds that training has waited for data so far
    int64_t consumed = 0;    // batches so far
    double worker_rate = 0;  // batches per second that the workers can do, as measured
    bool late = false;       // training waits for a batch that the own cores are late with
  };
  // Whether they serve from now on. Called every few milliseconds.
  bool Shares(const View& view, base::Instant now);

 private:
  void Look(const View& view, base::Duration elapsed, base::Instant now);

  bool shares_ = false;
  std::optional<base::Instant> looked_at_;
  View looked_;
  int enough_ = 0;
  base::Instant rests_until_{};
  base::Duration next_rest_ = kFirstRest;
};

}  // namespace hetero::feed
