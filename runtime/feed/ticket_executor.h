#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/feed/batch_producer.h"
#include "runtime/feed/busy_meter.h"
#include "runtime/feed/fatal_samples.h"
#include "runtime/feed/guarded_samples.h"
#include "runtime/feed/idle_threads.h"

namespace hetero::feed {

// A pool of threads that serves tickets in the order of submission; several threads share the
// samples of the oldest unfinished one. Those of a guarded ticket are produced in child processes
// (guarded_samples.h). Where there is no memory, or the producer throws something else, the ticket
// fails and the process lives. Behind a CPU worker's server and, at idle priority, on a trainer's
// own cores. Thread-safe. The destructor stops between two samples, drops what is unfinished
// without a callback, and joins.
class TicketExecutor {
 public:
  struct Options {
    std::string name;  // Batch::producer, and the threads' name
    int threads = 1;   // >= 1
    // Samples are produced when nothing else on the machine wants to run (idle_threads.h). All
    // else, the callbacks too, has threads of usual priority; and so have guarded tickets: fork()
    // locks the memory of the whole process, and a thread that others keep from the cores would
    // hold the lock for seconds.
    bool low_priority = false;
  };
  // Called on a thread of usual priority, with no lock held.
  struct Callbacks {
    std::function<void(const Ticket&)> on_started;
    std::function<void(const Ticket&, absl::StatusOr<std::unique_ptr<Batch>>)> on_done;
    SlabSource slabs = nullptr;  // the heap, if absent
  };
  using Handle = uint64_t;

  TicketExecutor(Options options, base::Clock& clock);
  ~TicketExecutor();

  // Tickets wait until this is called, once. `producer` outlives the executor.
  void SetProducer(const BatchProducer* producer);
  Handle Submit(const Ticket& ticket, Callbacks callbacks) {
    const Handle handle = Queue(ticket, std::move(callbacks), Now());
    Expect(handle);
    return handle;
  }
  // The same in two parts: it has its place, and is served from Expect() on, which may take longer.
  // Expect() does nothing to a ticket that was cancelled meanwhile. It waits since `asked`.
  Handle Queue(const Ticket& ticket, Callbacks callbacks, base::Instant asked);
  void Expect(Handle handle);
  // Drops a ticket that has not started; its callbacks are then never called. False when it has
  // started, is done, or never was.
  bool Cancel(Handle handle);
  // The producer avoids them (BatchProducer::Avoid), now or as soon as there is one.
  void Avoid(const std::vector<FatalSample>& samples);
  base::Instant Now() const { return clock_.Now(); }
  // With at least one ticket to serve.
  double busy_seconds() const { return busy_.seconds(); }

 private:
  struct Work;
  struct Queued {
    std::shared_ptr<Work> work;
    bool expected = false;   // Expect() was called
    bool preparing = false;  // a thread has it
    bool ready = false;      // its samples may be taken
  };

  enum class Serves { kAll, kGuarded, kUnguarded };
  void Loop(Serves serves, const std::stop_token& stop);
  void FeedIdleThreads(const std::stop_token& stop);
  void FinishForIdleThreads(const std::stop_token& stop);
  std::shared_ptr<Work> TakeWork(Serves serves, const std::stop_token& stop, bool* first);
  std::deque<Queued>::iterator Find(Handle handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<BatchProducer::Expected> ExpectedOf(const BatchProducer* producer,
                                                      const Ticket& ticket) const;
  std::unique_ptr<BatchProducer::Gathered> GatheredFor(const Work& work,
                                                       const std::stop_token& stop) const;
  void Prepare(Work* work);
  absl::Status Allocate(Work* work);
  static absl::Status ProduceHere(Work* work, int64_t index, GuardedSamples* made);
  absl::Status ProduceInChildren(Work* work, int64_t begin, int64_t end,
                                 const std::stop_token& stop, GuardedSamples* made);
  // Until all samples are taken. Whether they are all done, which is said to one thread.
  bool ProduceSamples(Work* work, const std::stop_token& stop);
  void Finish(Work* work);

  const Options options_;
  base::Clock& clock_;
  BusyMeter busy_;
  base::Mutex mutex_;
  base::CondVar changed_;
  const BatchProducer* producer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<FatalSample> avoided_ ABSL_GUARDED_BY(mutex_);  // while there is no producer
  // With samples that no thread has taken, by handle. What it has is destroyed without the lock:
  // callbacks may hold the last of a stream, and that batches of others.
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  Handle next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  std::unique_ptr<IdleThreads<Work>> idle_;  // with low_priority
  std::vector<std::jthread> threads_;
};

}  // namespace hetero::feed
