#include "operator/reconcile/call_pace.h"

#include <algorithm>
#include <cmath>

namespace hetero::reconcile {
namespace {

// No answer of an API server comes sooner: it was none, but a word to a head, or a call that was
// left out.
constexpr CallPace::Duration kNoCall = std::chrono::microseconds(50);

}  // namespace

CallPace::CallPace(const Settings& settings)
    : settings_(settings), at_once_(std::clamp<size_t>(settings.first, 1, settings.most)) {}

void CallPace::Ended(Duration took) {
  if (took < kNoCall) return;
  fastest_ = std::min(fastest_, took);
  total_ += took;
  if (++ended_ < at_once_) return;
  // The share of their time in which they did not wait for each other. One round whose calls all
  // waited for something else, as for a new leader of etcd, halves the number at most.
  const double mean = static_cast<double>(total_.count()) / static_cast<double>(ended_);
  const double share = std::max(0.5, static_cast<double>(fastest_.count()) / mean);
  const auto answered = static_cast<size_t>(std::lround(share * static_cast<double>(at_once_)));
  at_once_ = std::min(settings_.most, answered + settings_.queued);
  total_ = Duration(0);
  ended_ = 0;
}

}  // namespace hetero::reconcile
