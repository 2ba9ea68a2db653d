#include "runtime/feed/rate_meter.h"

#include <algorithm>
#include <cmath>

namespace hetero::feed {
namespace {

constexpr double kMemorySeconds = 1.0;
constexpr double kLeastKept = 0.6;  // of the past, however long the newest ticket took
constexpr double kShortest = 1e-6;

}  // namespace

void RateMeter::Started(base::Instant now) {
  if (under_way_++ == 0) counted_until_ = now;
}

void RateMeter::Finished(base::Instant now, base::Duration work) {
  if (under_way_ == 0) return;
  const double seen = base::ToSeconds(now - counted_until_);
  const double said = base::ToSeconds(work) / under_way_;
  const double spent = std::max({seen, said, kShortest});
  const double kept = std::max(kLeastKept, std::exp(-spent / kMemorySeconds));
  tickets_ = tickets_ * kept + 1;
  seconds_ = seconds_ * kept + spent;
  counted_until_ = now;
  --under_way_;
}

void RateMeter::Abandoned(int tickets) { under_way_ = std::max(0, under_way_ - tickets); }

void RateMeter::Forget(base::Instant now) {
  tickets_ = seconds_ = 0;
  counted_until_ = now;
}

std::optional<double> RateMeter::seconds_per_ticket() const {
  if (tickets_ == 0) return std::nullopt;
  return seconds_ / tickets_;
}

}  // namespace hetero::feed
