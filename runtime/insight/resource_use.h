#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a process and its machine used, as the head keeps and the report shows it. Plain values;
// pure.
namespace hetero::insight {

// Threads by what they do.
enum class ThreadGroup { kPipeline, kFeed, kTrain, kPython, kStorage, kGrpc, kOther };
inline constexpr size_t kThreadGroups = 7;
// "pipeline", ...
const char* NameOf(ThreadGroup group);
// kOther for a name that is none of them.
ThreadGroup ThreadGroupNamed(std::string_view name);
using SecondsByGroup = std::array<double, kThreadGroups>;  // by ThreadGroup
double Sum(const SecondsByGroup& seconds);

struct GpuPoint {
  int32_t index = 0;       // of NVML
  double utilization = 0;  // mean over the span, 0..1
  int64_t memory_used_bytes = 0, memory_total_bytes = 0;
  double power_watts = 0;  // mean; 0: not told
};

// One span of time of one process, its children included.
struct UsePoint {
  double seconds = 0;   // its end, since the job was created
  int64_t unix_ns = 0;  // its end, by the clock of the process
  double span = 0;      // its length in seconds, > 0
  SecondsByGroup cpu_seconds{};
  SecondsByGroup busiest_thread_seconds{};       // of the thread of each group that used most
  std::array<int32_t, kThreadGroups> threads{};  // most at once
  double run_queue_seconds = 0;             // ready to run and not running, sum over the threads
  std::optional<double> throttled_seconds;  // stopped by the CPU quota; absent: no quota is known
  int64_t rss_bytes = 0;                    // the largest
  int64_t major_faults = 0, disk_read_bytes = 0, disk_written_bytes = 0;
  int64_t received_bytes = 0, sent_bytes = 0;  // of the machine or pod
  // Share of the span, 0..1, in which some task waited for it; absent: the kernel does not tell.
  std::optional<double> cpu_pressure, io_pressure, memory_pressure;
  double cores = 0;               // that the process may use
  double machine_busy_cores = 0;  // mean, whoever used them
  std::string core_busy;          // a byte for each core of the machine, 255: all of the span
  int64_t memory_limit_bytes = 0;
  std::vector<GpuPoint> gpus;

  double busy_cores() const { return span > 0 ? Sum(cpu_seconds) / span : 0; }
  // Mean over the GPUs; absent without any.
  std::optional<double> gpu_utilization() const;
};

// Of two spans, of which `next` follows, the one that covers both: sums, means by their lengths,
// the larger memory. `to` becomes it.
void Join(const UsePoint& next, UsePoint& to);

// A series of spans one after the other, of always fewer than `most`: when there are as many, each
// two become one. Nothing of a sum is lost. A value type.
class UseSeries {
 public:
  static constexpr size_t kMost = 240;

  explicit UseSeries(size_t most = kMost) : most_(most) {}

  void Add(const UsePoint& point);
  const std::vector<UsePoint>& points() const { return points_; }

 private:
  size_t most_;
  std::vector<UsePoint> points_;
  double least_span_ = 0;  // a shorter last point is joined with the next
};

}  // namespace hetero::insight
