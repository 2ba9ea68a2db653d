#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "hetero/v1/membership.pb.h"
#include "runtime/head/loss_curve.h"
#include "runtime/insight/resource_use.h"
#include "runtime/insight/thinned_series.h"

namespace hetero::head {

// What a member has told in the lists of its heartbeats (losses, evaluations, bad samples, faults,
// where its time went, and what it used), from the beginning. A stream that breaks may have lost
// what was just written to it, and the head that answers next may be another, so a new stream
// begins with all of it; a head drops what it knows already. Bounded, texts included: a message
// that is larger than the head takes would be refused each time anew, and this member never be
// heard again. Long curves are thinned, except for their newest points; of batches' lives the
// newest are kept. Not thread-safe.
class HeartbeatBuffer {
 public:
  static constexpr size_t kMaxEvaluations = 1000;  // the newest
  static constexpr size_t kMaxBadSamples = 10'000;
  static constexpr size_t kMaxReasons = 100;  // of the first bad samples; heads keep no more
  static constexpr size_t kMaxFaults = 100;
  static constexpr size_t kMaxTimePoints = 120;
  static constexpr size_t kNewestLosses = 500;  // not thinned
  static constexpr size_t kNewestPoints =
      120;  // of resources, not joined: a minute of half seconds
  static constexpr size_t kOlderPoints = 120;
  static constexpr size_t kMaxLives = 50;

  // Keeps the lists of `heartbeat`.
  void Add(const v1::Heartbeat& heartbeat);
  // All lists, oldest first; the rest is of `latest`.
  v1::Heartbeat Merge(const v1::Heartbeat& latest) const;

 private:
  void AddTimePoint(const v1::Progress& progress);
  void AddResources(const v1::Heartbeat& heartbeat);

  LossCurve losses_;
  std::deque<v1::LossPoint> newest_losses_;
  std::deque<v1::EvaluationResult> evaluations_;
  std::vector<v1::BadSampleReport> bad_samples_;
  std::vector<v1::FaultReport> faults_;
  insight::ThinnedSeries<v1::TimePoint, kMaxTimePoints> time_line_;
  std::deque<v1::ResourcePoint> newest_resources_;
  insight::UseSeries older_resources_{kOlderPoints};
  std::deque<v1::BatchLife> lives_;
};

}  // namespace hetero::head
