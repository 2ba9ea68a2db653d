#pragma once

#include <optional>

#include "base/clock.h"

namespace hetero::feed {

// How long one producer takes per ticket while it has tickets under way, over about the latest
// second of such time. Time without a ticket under way does not count, so a producer that waits for
// tickets is not taken for a slow one. Not thread-safe.
class RateMeter {
 public:
  // A ticket came under way.
  void Started(base::Instant now);
  // A ticket under way is done. `work` is what the producer says it took, and bounds the result
  // from below: over a network several answers may arrive in one moment.
  void Finished(base::Instant now, base::Duration work);
  // `tickets` under way will not be done.
  void Abandoned(int tickets);
  // What was measured until now says nothing about the producer any more.
  void Forget(base::Instant now);

  // Absent until a ticket is done.
  std::optional<double> seconds_per_ticket() const;

 private:
  int under_way_ = 0;
  base::Instant counted_until_;
  double tickets_ = 0;  // both decay, so that the newest second weighs most
  double seconds_ = 0;
};

}  // namespace hetero::feed
