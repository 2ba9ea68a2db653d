#include "base/backoff.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

namespace hetero::base {

Backoff::Backoff(const Options& options, Random random)
    : options_(options),
      random_(std::move(random)),
      wait_(std::min(options.initial, options.max)) {}

Duration Backoff::Next() {
  ++attempts_;
  const double seconds = ToSeconds(wait_);
  wait_ = FromSeconds(std::min(seconds * options_.multiplier, ToSeconds(options_.max)));
  return FromSeconds(seconds * (1 - options_.jitter * random_()));
}

void Backoff::Reset() {
  wait_ = std::min(options_.initial, options_.max);
  attempts_ = 0;
}

Backoff::Random Backoff::SystemRandom() {
  auto generator = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [generator] { return static_cast<double>((*generator)() >> 11) * 0x1p-53; };
}

}  // namespace hetero::base
