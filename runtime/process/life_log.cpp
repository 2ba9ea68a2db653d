#include "runtime/process/life_log.h"

#include <algorithm>
#include <utility>

namespace hetero::process {
namespace {

constexpr char kOwnCores[] = "local";  // Batch::producer of what the rank itself made

v1::BatchLife LifeOf(const feed::Batch& batch, const feed::BatchTimes& times) {
  v1::BatchLife life;
  life.set_ticket(batch.ticket.id);
  life.set_step(batch.ticket.step + 1);
  if (batch.producer != kOwnCores) life.set_worker(batch.producer);
  life.set_asked_unix_ns(
      std::chrono::duration_cast<base::Duration>(times.asked.time_since_epoch()).count());
  life.set_queued_seconds(base::ToSeconds(times.queued));
  life.set_work_seconds(base::ToSeconds(times.work));
  life.set_transfer_seconds(base::ToSeconds(times.transfer));
  life.set_window_seconds(base::ToSeconds(times.window));
  life.set_read_seconds(base::ToSeconds(times.read));
  life.set_cpu_seconds(batch.cpu_seconds > 0 ? batch.cpu_seconds : 0);
  life.set_samples(static_cast<int32_t>(batch.count()));
  life.set_bytes(batch.tensor_bytes());
  return life;
}

double Between(base::Instant begin, base::Instant end) {
  return std::max(base::ToSeconds(end - begin), 0.0);
}

void Write(const insight::Histogram& histogram, v1::Histogram* out) {
  for (const auto& [bucket, times] : histogram.buckets()) {
    out->add_bucket(bucket);
    out->add_count(times);
  }
}

}  // namespace

LifeLog::Open& LifeLog::Begin(const feed::Batch& batch, base::Instant now) {
  Open open{.life = LifeOf(batch, *batch.times), .began = now, .ended = {}};
  open.life.set_handover_seconds(Between(batch.times->taken, now));
  while (open_.size() >= kMostOpen) open_.erase(open_.begin());
  return open_[open.life.step()] = std::move(open);
}

void LifeLog::OnBegins(const feed::Batch& batch, base::Instant now) {
  if (batch.times) Begin(batch, now);
}

void LifeLog::OnUsed(const feed::Batch& batch, base::Instant now) {
  if (!batch.times) return;
  const auto known = open_.find(batch.ticket.step + 1);
  if (known == open_.end()) {
    Begin(batch, now);
  } else {
    known->second.ended = now;
  }
}

void LifeLog::OnStep(int64_t step, double seconds, base::Instant now) {
  whole_step_.Add(seconds);
  if (auto node = open_.extract(step)) {
    Open& open = node.mapped();
    v1::BatchLife& life = open.life;
    life.set_step_seconds(Between(open.began, open.ended.value_or(now)));
    queued_.Add(life.queued_seconds());
    work_.Add(life.work_seconds());
    transfer_.Add(life.transfer_seconds());
    window_.Add(life.window_seconds());
    handover_.Add(life.handover_seconds());
    step_.Add(life.step_seconds());
    read_.Add(life.read_seconds());
    if (lives_.size() >= kMostLives) lives_.erase(lives_.begin());
    lives_.push_back(std::move(life));
  }
  open_.erase(open_.begin(), open_.lower_bound(step));
}

void LifeLog::Take(v1::Heartbeat& heartbeat) {
  for (v1::BatchLife& life : lives_) heartbeat.add_lives()->Swap(&life);
  lives_.clear();
  if (whole_step_.count() == 0) return;
  v1::LifeHistograms& out = *heartbeat.mutable_life_histograms();
  Write(queued_, out.mutable_queued());
  Write(work_, out.mutable_work());
  Write(transfer_, out.mutable_transfer());
  Write(window_, out.mutable_window());
  Write(handover_, out.mutable_handover());
  Write(step_, out.mutable_step());
  Write(read_, out.mutable_read());
  Write(whole_step_, out.mutable_whole_step());
}

}  // namespace hetero::process
