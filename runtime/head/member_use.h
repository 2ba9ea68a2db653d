#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "hetero/v1/membership.pb.h"
#include "hetero/v1/resources.pb.h"
#include "runtime/insight/histogram.h"
#include "runtime/insight/resource_use.h"

namespace hetero::head {

// The spans of a batch's life in their order, then what is part of kWork.
enum class LifeSpan { kQueued, kWork, kTransfer, kWindow, kHandover, kStep, kRead };
inline constexpr size_t kLifeSpans = 7;
// "queued", "work", "transfer", "window", "handover", "step", "read".
const char* NameOf(LifeSpan span);
// Of one life, in seconds.
double SecondsOf(const v1::BatchLife& life, LifeSpan span);

// Over all processes that have held the member's place and told this head.
struct UseTotals {
  double seconds = 0;  // that points cover
  insight::SecondsByGroup cpu_seconds{};
  double run_queue_seconds = 0;
  std::optional<double> throttled_seconds;
  int64_t peak_rss_bytes = 0;
  int64_t major_faults = 0;
  int64_t disk_read_bytes = 0, disk_written_bytes = 0, received_bytes = 0, sent_bytes = 0;
  double cores = 0;             // as last told
  double gpu_seconds = 0;       // that points with GPUs cover
  double gpu_busy_seconds = 0;  // mean utilization of the GPUs times the span, of those
};

// What one member has told about the resources that it uses and about the lives of its batches
// (proto/hetero/v1/resources.proto). Bounded, whatever it tells: what cannot be is left out and
// counted. What comes again after a stream broke is known by its time and taken once. A value
// type; not thread-safe.
class MemberUse {
 public:
  static constexpr size_t kRecentPoints = 240;  // two minutes of half seconds
  static constexpr size_t kRecentLives = 50;
  static constexpr int kMostPointsTold = 600;  // of one message
  static constexpr int kMostLivesTold = 400;

  struct Heard {
    int64_t unix_ns = 0;       // now, by the head's clock
    double job_seconds = 0;    // now, since the job was created
    bool tells_lives = false;  // of ranks only
  };
  void Take(const v1::Heartbeat& heartbeat, const Heard& heard);
  // Another process takes the member's place, perhaps on another machine.
  void OnProcessReplaced();

  // One after the other in time, the newest last.
  const std::deque<insight::UsePoint>& recent() const { return recent_; }  // as they were told
  const insight::UseSeries& whole() const { return whole_; }               // of the whole job
  const std::deque<v1::BatchLife>& lives() const { return lives_; }        // texts limited
  const UseTotals& totals() const { return totals_; }
  // Cores that the process kept busy, weighed by time.
  const insight::Histogram& busy_cores() const { return busy_cores_; }
  // Of sampled batches; earlier processes too.
  insight::Histogram LifeSeconds(LifeSpan span) const;
  // Of all steps, their waiting included; likewise.
  insight::Histogram StepSeconds() const;
  // The sender's clock against the head's, positive where it is ahead: the largest of the last few
  // heartbeats, which is that of the fastest. Absent: not told by this process.
  std::optional<double> clock_offset_seconds() const;
  int64_t left_out() const { return left_out_; }  // points and lives that cannot be

  // Nothing was told.
  bool empty() const { return recent_.empty() && lives_.empty(); }

 private:
  void TakePoint(const v1::ResourcePoint& told, const v1::Heartbeat& heartbeat, const Heard& heard);
  void TakeLife(const v1::BatchLife& told);
  void TakeHistograms(const v1::LifeHistograms& told);
  void AddToTotals(const insight::UsePoint& point);

  std::deque<insight::UsePoint> recent_;
  insight::UseSeries whole_;
  std::deque<v1::BatchLife> lives_;
  UseTotals totals_;
  insight::Histogram busy_cores_;
  // By LifeSpan, then that of all steps.
  using Histograms = std::array<insight::Histogram, kLifeSpans + 1>;
  Histograms now_;               // of the current process
  Histograms earlier_;           // of the processes it replaced
  std::deque<double> offsets_;   // of the last few heartbeats, seconds
  int64_t newest_point_ns_ = 0;  // end of the current process' newest point; 0: none
  int64_t left_out_ = 0;
};

}  // namespace hetero::head
