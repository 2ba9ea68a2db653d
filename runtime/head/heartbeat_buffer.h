#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/loss_curve.h"
#include "runtime/insight/thinned_series.h"

namespace hetero::head {

// What a member has told in the lists of its heartbeats (losses, evaluations, bad samples, faults,
// and where its time went), from the beginning. A stream that breaks may have lost what was just
// written to it, and the head that answers next may be another, so a new stream begins with all of
// it; a head drops what it knows already. Bounded, texts included: a message that is larger than
// the head takes would be refused each time anew, and this member never be heard again. Long curves
// are thinned, except for their newest points. Not thread-safe.
class HeartbeatBuffer {
 public:
  static constexpr size_t kMaxEvaluations = 1000;  // the newest
  static constexpr size_t kMaxBadSamples = 10'000;
  static constexpr size_t kMaxReasons = 100;  // of the first bad samples; heads keep no more
  static constexpr size_t kMaxFaults = 100;
  static constexpr size_t kMaxTimePoints = 120;
  static constexpr size_t kNewestLosses = 500;  // not thinned

  // Keeps the lists of `heartbeat`.
  void Add(const v1::Heartbeat& heartbeat);
  // All lists, oldest first; the rest is of `latest`.
  v1::Heartbeat Merge(const v1::Heartbeat& latest) const;

 private:
  void AddTimePoint(const v1::Progress& progress);

  LossCurve losses_;
  std::deque<v1::LossPoint> newest_losses_;
  std::deque<v1::EvaluationResult> evaluations_;
  std::vector<v1::BadSampleReport> bad_samples_;
  std::vector<v1::FaultReport> faults_;
  insight::ThinnedSeries<v1::TimePoint, kMaxTimePoints> time_line_;
};

}  // namespace hetero::head
