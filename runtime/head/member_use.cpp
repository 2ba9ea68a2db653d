#include "runtime/head/member_use.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "runtime/head/member_totals.h"
#include "runtime/head/resource_point.h"

namespace hetero::head {
namespace {

constexpr double kMostSeconds = 4e8;  // of one span: a dozen years
constexpr double kMostCpus = 1 << 16;
constexpr size_t kMostName = 64;
constexpr size_t kOffsetsKept = 60;  // a minute of heartbeats
constexpr int kMostBuckets = insight::Histogram::kHighest - insight::Histogram::kLowest + 1;
// What busy cores are weighed by: a point of the usual length counts once.
constexpr double kUsualSpan = 0.5;

bool Within(double value, double most) { return value >= 0 && value <= most; }  // NaN is not
bool Within(int64_t count) { return count >= 0 && count <= kMostCounted; }

bool PlausibleLife(const v1::BatchLife& told) {
  for (size_t i = 0; i < kLifeSpans; ++i) {
    if (!Within(SecondsOf(told, static_cast<LifeSpan>(i)), kMostSeconds)) return false;
  }
  return Within(told.ticket()) && Within(told.step()) && Within(told.bytes()) &&
         told.asked_unix_ns() > 0 && told.samples() >= 0 &&
         Within(told.cpu_seconds(), kMostSeconds * kMostCpus) && told.worker().size() <= kMostName;
}

// Empty: it cannot be one.
std::optional<insight::Histogram> MakeHistogram(const v1::Histogram& told) {
  if (told.bucket_size() != told.count_size() || told.bucket_size() > kMostBuckets) {
    return std::nullopt;
  }
  insight::Histogram histogram;
  for (int i = 0; i < told.bucket_size(); ++i) {
    histogram.AddToBucket(told.bucket(i), told.count(i));
  }
  return histogram;
}

const v1::Histogram& HistogramOf(const v1::LifeHistograms& told, LifeSpan span) {
  switch (span) {
    case LifeSpan::kQueued:
      return told.queued();
    case LifeSpan::kWork:
      return told.work();
    case LifeSpan::kTransfer:
      return told.transfer();
    case LifeSpan::kWindow:
      return told.window();
    case LifeSpan::kHandover:
      return told.handover();
    case LifeSpan::kStep:
      return told.step();
    case LifeSpan::kRead:
      return told.read();
  }
  std::abort();
}

}  // namespace

const char* NameOf(LifeSpan span) {
  switch (span) {
    case LifeSpan::kQueued:
      return "queued";
    case LifeSpan::kWork:
      return "work";
    case LifeSpan::kTransfer:
      return "transfer";
    case LifeSpan::kWindow:
      return "window";
    case LifeSpan::kHandover:
      return "handover";
    case LifeSpan::kStep:
      return "step";
    case LifeSpan::kRead:
      return "read";
  }
  std::abort();
}

double SecondsOf(const v1::BatchLife& life, LifeSpan span) {
  switch (span) {
    case LifeSpan::kQueued:
      return life.queued_seconds();
    case LifeSpan::kWork:
      return life.work_seconds();
    case LifeSpan::kTransfer:
      return life.transfer_seconds();
    case LifeSpan::kWindow:
      return life.window_seconds();
    case LifeSpan::kHandover:
      return life.handover_seconds();
    case LifeSpan::kStep:
      return life.step_seconds();
    case LifeSpan::kRead:
      return life.read_seconds();
  }
  std::abort();
}

void MemberUse::Take(const v1::Heartbeat& heartbeat, const Heard& heard) {
  if (heartbeat.sent_unix_ns() > 0) {
    offsets_.push_back(static_cast<double>(heartbeat.sent_unix_ns() - heard.unix_ns) * 1e-9);
    if (offsets_.size() > kOffsetsKept) offsets_.pop_front();
  }
  const int points = std::min(heartbeat.resources_size(), kMostPointsTold);
  left_out_ += heartbeat.resources_size() - points;
  for (int i = 0; i < points; ++i) TakePoint(heartbeat.resources(i), heartbeat, heard);
  if (!heard.tells_lives) return;
  const int lives = std::min(heartbeat.lives_size(), kMostLivesTold);
  left_out_ += heartbeat.lives_size() - lives;
  for (int i = 0; i < lives; ++i) TakeLife(heartbeat.lives(i));
  if (heartbeat.has_life_histograms()) TakeHistograms(heartbeat.life_histograms());
}

// Both the point and the heartbeat have the sender's time: how that differs from this head's does
// not matter.
void MemberUse::TakePoint(const v1::ResourcePoint& told, const v1::Heartbeat& heartbeat,
                          const Heard& heard) {
  std::optional<insight::UsePoint> read = ReadPoint(told);
  if (!read) {
    ++left_out_;
    return;
  }
  if (told.unix_ns() <= newest_point_ns_) return;
  newest_point_ns_ = told.unix_ns();
  insight::UsePoint& point = *read;
  const int64_t sent = heartbeat.sent_unix_ns() > 0 ? heartbeat.sent_unix_ns() : heard.unix_ns;
  const double age = static_cast<double>(sent - told.unix_ns()) * 1e-9;
  point.seconds = std::clamp(heard.job_seconds - age, 0.0, std::max(heard.job_seconds, 0.0));
  if (!recent_.empty()) point.seconds = std::max(point.seconds, recent_.back().seconds);
  AddToTotals(point);
  whole_.Add(point);
  recent_.push_back(std::move(point));
  if (recent_.size() > kRecentPoints) recent_.pop_front();
}

void MemberUse::AddToTotals(const insight::UsePoint& point) {
  totals_.seconds += point.span;
  for (size_t i = 0; i < insight::kThreadGroups; ++i) {
    totals_.cpu_seconds[i] += point.cpu_seconds[i];
  }
  totals_.run_queue_seconds += point.run_queue_seconds;
  if (point.throttled_seconds) {
    totals_.throttled_seconds = totals_.throttled_seconds.value_or(0) + *point.throttled_seconds;
  }
  totals_.peak_rss_bytes = std::max(totals_.peak_rss_bytes, point.rss_bytes);
  const auto add = [](int64_t count, int64_t& sum) { sum += std::min(count, kMostCounted - sum); };
  add(point.major_faults, totals_.major_faults);
  add(point.disk_read_bytes, totals_.disk_read_bytes);
  add(point.disk_written_bytes, totals_.disk_written_bytes);
  add(point.received_bytes, totals_.received_bytes);
  add(point.sent_bytes, totals_.sent_bytes);
  totals_.cores = point.cores;
  if (const auto utilization = point.gpu_utilization()) {
    totals_.gpu_seconds += point.span;
    totals_.gpu_busy_seconds += *utilization * point.span;
  }
  busy_cores_.Add(point.busy_cores(), std::max<int64_t>(std::llround(point.span / kUsualSpan), 1));
}

void MemberUse::TakeLife(const v1::BatchLife& told) {
  if (!PlausibleLife(told)) {
    ++left_out_;
    return;
  }
  const bool known = std::any_of(lives_.begin(), lives_.end(), [&](const v1::BatchLife& life) {
    return life.ticket() == told.ticket() && life.asked_unix_ns() == told.asked_unix_ns();
  });
  if (known) return;
  lives_.push_back(told);
  if (lives_.size() > kRecentLives) lives_.pop_front();
}

void MemberUse::TakeHistograms(const v1::LifeHistograms& told) {
  Histograms made;
  for (size_t i = 0; i < made.size(); ++i) {
    auto histogram = MakeHistogram(i < kLifeSpans ? HistogramOf(told, static_cast<LifeSpan>(i))
                                                  : told.whole_step());
    if (!histogram) {
      ++left_out_;
      return;
    }
    made[i] = *std::move(histogram);
  }
  now_ = std::move(made);
}

void MemberUse::OnProcessReplaced() {
  for (size_t i = 0; i < now_.size(); ++i) earlier_[i].Add(std::exchange(now_[i], {}));
  offsets_.clear();
  newest_point_ns_ = 0;
}

insight::Histogram MemberUse::LifeSeconds(LifeSpan span) const {
  insight::Histogram sum = earlier_[static_cast<size_t>(span)];
  sum.Add(now_[static_cast<size_t>(span)]);
  return sum;
}

insight::Histogram MemberUse::StepSeconds() const {
  insight::Histogram sum = earlier_.back();
  sum.Add(now_.back());
  return sum;
}

std::optional<double> MemberUse::clock_offset_seconds() const {
  if (offsets_.empty()) return std::nullopt;
  return *std::max_element(offsets_.begin(), offsets_.end());
}

}  // namespace hetero::head
