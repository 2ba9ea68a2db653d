#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/job/schedule.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// Reads samples before they are taken, with as many reads at a time as it takes for nobody to wait:
// a few more each time somebody did. Where each read waits for a network, threads that decode would
// wait longer than they work; these wait for them. Thread-safe, but not for children that fork()
// made.
class ReadAhead {
  struct Entry;
  using Key = std::pair<job::Split, int64_t>;
  using Samples = std::vector<std::pair<Key, std::shared_ptr<Entry>>>;
  struct Run {
    Samples samples;
    int64_t bytes = 0;  // as Dataset::Run
  };
  struct ReadSamples {
    std::vector<source::RawSample> samples;
    std::vector<absl::Status> statuses;
    absl::Status thrown;  // where there are no statuses
  };

 public:
  struct Options {
    int first_reads = 8;  // underway at a time, each on a thread of its own
    int most_reads = 256;
    int64_t most_bytes = 128 << 20;  // of samples that nobody has taken yet, and one run more
  };
  // Of a ticket, more are not read ahead.
  static constexpr size_t kMostExpected = 4096;
  // Reads the samples of a run, as Dataset::ReadRun() does.
  using Read = std::function<std::vector<absl::Status>(job::Split, absl::Span<const int64_t> ids,
                                                       absl::Span<source::RawSample> samples)>;

  // `read` is called on threads of this object, which are timed by `clock`.
  ReadAhead(const Options& options, Read read, base::Clock& clock = base::Clock::Real());
  // Waits for the reads that are underway.
  ~ReadAhead();

  // Samples that are expected as long as this lives. It ends before the ReadAhead does.
  class Expected : public BatchProducer::Expected {
   public:
    ~Expected() override;
    Expected(const Expected&) = delete;
    Expected& operator=(const Expected&) = delete;

   private:
    friend class ReadAhead;
    explicit Expected(ReadAhead* owner) : owner_(owner) {}
    ReadAhead* const owner_;
    Samples samples_;
  };
  // Runs of samples, each of which is read at once. They are read in this order, after those that
  // are expected already; what is left of a run of which more than a sixteenth was taken, sample by
  // sample. Null: there are no threads to be had.
  std::unique_ptr<Expected> Expect(job::Split split, const std::vector<source::Dataset::Run>& runs);

  // What reading the sample gave, for which this waits where it is being read; none where nobody
  // has begun to read it, which the caller does then. A sample is given once.
  std::optional<absl::Status> Take(job::Split split, int64_t id, source::RawSample* sample);

 private:
  void Loop(const std::stop_token& stop);
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnStall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool StartNext(Run* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t MemoryFor(const Run& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ReadSamples ReadOf(const Run& run) const;
  void Keep(const Run& run, ReadSamples read) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const Samples& samples);
  void Measure(base::Duration time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Read read_;
  base::Clock& clock_;
  std::atomic<bool> used_ = false;  // something was expected
  base::Mutex mutex_;
  base::CondVar wanted_;  // there may be something to read
  base::CondVar read_done_;
  // Tickets of two epochs may want the same sample, and have an entry each.
  std::multimap<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<Run> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;           // of entries that were read
  int64_t reading_bytes_ ABSL_GUARDED_BY(mutex_) = 0;        // that reads underway may hold
  int64_t usual_bytes_ ABSL_GUARDED_BY(mutex_) = 512 << 10;  // of a sample, as far as is known
  int limit_ ABSL_GUARDED_BY(mutex_);                        // of reads that are underway
  int64_t measured_ ABSL_GUARDED_BY(mutex_) = 0;             // reads
  base::Duration usual_time_ ABSL_GUARDED_BY(mutex_){};      // of a read
  base::Duration least_time_ ABSL_GUARDED_BY(mutex_){base::Duration::max() / 8};  // that was usual
  int reading_ ABSL_GUARDED_BY(mutex_) = 0;
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::feed
