#include "runtime/head/heartbeat_buffer.h"

#include "runtime/head/resource_point.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

template <typename Kept, typename Points>
void Repeat(const Kept& kept, Points* points) {
  for (const auto& point : kept) *points->Add() = point;
}

}  // namespace

void HeartbeatBuffer::AddTimePoint(const v1::Progress& progress) {
  const auto& points = time_line_.points();
  if (!points.empty() && progress.train_seconds() <= points.back().seconds()) return;
  v1::TimePoint point;
  point.set_step(progress.step());
  point.set_seconds(progress.train_seconds());
  *point.mutable_phases() = progress.phases();
  time_line_.Add(point);
}

// A head that knows some of the newest takes the others alone; those that were joined it knows all,
// or none.
void HeartbeatBuffer::AddResources(const v1::Heartbeat& heartbeat) {
  for (const v1::ResourcePoint& point : heartbeat.resources()) {
    newest_resources_.push_back(point);
    if (newest_resources_.size() <= kNewestPoints) continue;
    if (const auto oldest = ReadPoint(newest_resources_.front())) older_resources_.Add(*oldest);
    newest_resources_.pop_front();
  }
  for (const v1::BatchLife& life : heartbeat.lives()) {
    lives_.push_back(life);
    if (lives_.size() > kMaxLives) lives_.pop_front();
  }
}

void HeartbeatBuffer::Add(const v1::Heartbeat& heartbeat) {
  for (const v1::LossPoint& point : heartbeat.losses()) {
    losses_.Add(point);
    newest_losses_.push_back(point);
    if (newest_losses_.size() > kNewestLosses) newest_losses_.pop_front();
  }
  for (const v1::EvaluationResult& result : heartbeat.evaluations()) {
    evaluations_.push_back(result);
    if (evaluations_.size() > kMaxEvaluations) evaluations_.pop_front();
  }
  for (const v1::BadSampleReport& sample : heartbeat.bad_samples()) {
    if (bad_samples_.size() >= kMaxBadSamples) break;
    std::string& reason = *bad_samples_.emplace_back(sample).mutable_reason();
    LimitText(bad_samples_.size() <= kMaxReasons ? kMaxListedText : 0, reason);
  }
  for (const v1::FaultReport& fault : heartbeat.faults()) {
    if (faults_.size() >= kMaxFaults) break;
    LimitText(kMaxText, *faults_.emplace_back(fault).mutable_what());
  }
  if (heartbeat.progress().has_phases()) AddTimePoint(heartbeat.progress());
  AddResources(heartbeat);
}

v1::Heartbeat HeartbeatBuffer::Merge(const v1::Heartbeat& latest) const {
  HeartbeatBuffer all = *this;
  all.Add(latest);
  v1::Heartbeat merged = latest;
  merged.clear_losses();
  merged.clear_evaluations();
  merged.clear_bad_samples();
  merged.clear_faults();
  merged.clear_resources();
  merged.clear_lives();
  for (const v1::LossPoint& point : all.losses_.points()) {
    if (point.step() < all.newest_losses_.front().step()) *merged.add_losses() = point;
  }
  Repeat(all.newest_losses_, merged.mutable_losses());
  Repeat(all.evaluations_, merged.mutable_evaluations());
  Repeat(all.bad_samples_, merged.mutable_bad_samples());
  Repeat(all.faults_, merged.mutable_faults());
  Repeat(all.time_line_.points(), merged.mutable_time_line());
  for (const insight::UsePoint& point : all.older_resources_.points()) {
    WritePoint(point, merged.add_resources());
  }
  Repeat(all.newest_resources_, merged.mutable_resources());
  Repeat(all.lives_, merged.mutable_lives());
  return merged;
}

}  // namespace hetero::head
