#include "runtime/feed/ticket_executor.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "runtime/feed/read_time.h"
#include "runtime/feed/thrown.h"

namespace hetero::feed {
namespace {

constexpr char kThreadPrefix[] = "make-";  // runtime/process/thread_groups.h knows it

constexpr int64_t kMaxChunk =
    16;  // samples taken at once, so that tiny ones do not fight for a counter

// In a handler.
absl::Status Thrown(const std::string& where) {
  const absl::Status status = StatusOfThrown();
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace

struct TicketExecutor::Work {
  Handle handle = 0;
  Ticket ticket;
  Callbacks callbacks;
  std::unique_ptr<BatchProducer::Expected> expected;
  std::unique_ptr<BatchProducer::Gathered> gathered;  // on threads of idle priority

  base::Instant asked;

  // Written before any other thread sees the work as ready.
  std::unique_ptr<Batch> batch;
  const BatchProducer* producer = nullptr;
  base::Instant started;
  int64_t count = 0;  // samples to produce: none when the ticket is refused
  int64_t chunk = 1;

  std::atomic<int64_t> next{0};       // first sample that no thread has taken
  std::atomic<int64_t> remaining{0};  // samples that are not done
  std::atomic<bool> failed{false};

  base::Mutex mutex;
  absl::Status status ABSL_GUARDED_BY(mutex);
  std::vector<BadSample> bad_samples ABSL_GUARDED_BY(mutex);
  std::vector<FatalSample> fatal ABSL_GUARDED_BY(mutex);
  double cpu_seconds ABSL_GUARDED_BY(mutex) = 0;
  // Of all threads that worked on it: waiting for storage, and altogether.
  base::Duration read ABSL_GUARDED_BY(mutex){0};
  base::Duration worked ABSL_GUARDED_BY(mutex){0};

  double read_share() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return worked > base::Duration::zero() ? base::ToSeconds(read) / base::ToSeconds(worked) : 0;
  }
};

TicketExecutor::TicketExecutor(Options options, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), busy_(clock) {
  const auto start = [this](Serves serves) {
    for (int i = 0; i < options_.threads; ++i) {
      threads_.emplace_back([this, serves](std::stop_token stop) { Loop(serves, stop); });
    }
  };
  if (!options_.low_priority) {
    start(Serves::kAll);
    return;
  }
  start(Serves::kGuarded);
  idle_ = std::make_unique<IdleThreads<Work>>(
      absl::StrCat(kThreadPrefix, options_.name), options_.threads,
      IdleThreads<Work>::Calls{
          .open = [](const Work& work) { return work.next < work.count; },
          .run = [this](Work* work, const auto& stop) { return ProduceSamples(work, stop); }});
  threads_.emplace_back([this](std::stop_token stop) { FeedIdleThreads(stop); });
  threads_.emplace_back([this](std::stop_token stop) { FinishForIdleThreads(stop); });
}

TicketExecutor::~TicketExecutor() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // before idle_, which two of them use
}

void TicketExecutor::SetProducer(const BatchProducer* producer) {
  const base::MutexLock lock(mutex_);
  producer_ = producer;
  for (const FatalSample& sample : std::exchange(avoided_, {})) producer->Avoid(sample);
  for (Queued& queued : queue_) queued.work->expected = ExpectedOf(producer, queued.work->ticket);
  changed_.NotifyAll();
}

void TicketExecutor::Avoid(const std::vector<FatalSample>& samples) {
  const base::MutexLock lock(mutex_);
  for (const FatalSample& sample : samples) {
    if (producer_ != nullptr) {
      producer_->Avoid(sample);
    } else if (avoided_.size() < static_cast<size_t>(FatalSamples::kMost)) {
      avoided_.push_back(sample);
    }
  }
}

// Children of fork() take no lock.
std::unique_ptr<BatchProducer::Expected> TicketExecutor::ExpectedOf(const BatchProducer* producer,
                                                                    const Ticket& ticket) const {
  if (ticket.guarded) return nullptr;
  try {
    return producer->Expect(ticket);
  } catch (...) {
    return nullptr;  // it is served all the same
  }
}

// Threads of idle priority hold no lock that others wait for, and wait for no network.
std::unique_ptr<BatchProducer::Gathered> TicketExecutor::GatheredFor(
    const Work& work, const std::stop_token& stop) const {
  try {
    return work.producer->Gather(work.ticket, stop);
  } catch (...) {
    return nullptr;  // it is served all the same
  }
}

TicketExecutor::Handle TicketExecutor::Queue(const Ticket& ticket, Callbacks callbacks,
                                             base::Instant asked) {
  auto work = std::make_shared<Work>();
  work->ticket = ticket;
  work->callbacks = std::move(callbacks);
  work->asked = asked;
  busy_.OnAccepted();
  const base::MutexLock lock(mutex_);
  work->handle = next_handle_++;
  queue_.push_back({.work = work});
  return work->handle;
}

std::deque<TicketExecutor::Queued>::iterator TicketExecutor::Find(Handle handle) {
  const auto place = std::lower_bound(
      queue_.begin(), queue_.end(), handle,
      [](const Queued& queued, Handle wanted) { return queued.work->handle < wanted; });
  return place != queue_.end() && place->work->handle == handle ? place : queue_.end();
}

void TicketExecutor::Expect(Handle handle) {
  std::shared_ptr<Work> work;  // destroyed without the lock
  std::unique_ptr<BatchProducer::Expected> expected;
  base::MutexLock lock(mutex_);
  auto queued = Find(handle);
  if (queued == queue_.end()) return;
  work = queued->work;
  if (const BatchProducer* const producer = producer_) {
    lock.Unlock();
    expected = ExpectedOf(producer, work->ticket);
    lock.Lock();
    queued = Find(handle);
    if (queued == queue_.end()) return;
    work->expected.swap(expected);
  }
  queued->expected = true;
  changed_.NotifyAll();  // the thread that one would wake may not serve it
}

bool TicketExecutor::Cancel(Handle handle) {
  std::shared_ptr<Work> dropped;  // destroyed without the lock
  const base::MutexLock lock(mutex_);
  const auto queued = Find(handle);
  if (queued == queue_.end() || queued->preparing) return false;
  dropped = queued->work;
  queue_.erase(queued);
  busy_.OnDone();
  return true;
}

void TicketExecutor::Loop(Serves serves, const std::stop_token& stop) {
  base::SetThreadName(absl::StrCat(kThreadPrefix, options_.name));
  while (!stop.stop_requested()) {
    bool first = false;
    const std::shared_ptr<Work> work = TakeWork(serves, stop, &first);
    if (work == nullptr) return;
    if (first) Prepare(work.get());
    if (work->count == 0 || ProduceSamples(work.get(), stop)) Finish(work.get());
  }
}

void TicketExecutor::FeedIdleThreads(const std::stop_token& stop) {
  base::SetThreadName(absl::StrCat(kThreadPrefix, options_.name, "-give"));
  while (!stop.stop_requested() && idle_->AwaitRoom(stop)) {
    bool first = false;
    const std::shared_ptr<Work> work = TakeWork(Serves::kUnguarded, stop, &first);
    if (work == nullptr || stop.stop_requested()) return;
    Prepare(work.get());
    {
      const base::MutexLock lock(mutex_);
      if (const auto queued = Find(work->handle); queued != queue_.end()) queue_.erase(queued);
    }
    if (work->count == 0) {
      Finish(work.get());
    } else {
      const WorkTimer timer(clock_);
      work->gathered = GatheredFor(*work, stop);
      {
        const base::MutexLock lock(work->mutex);
        timer.AddTo(&work->worked, &work->read);
      }
      if (stop.stop_requested()) return;
      idle_->Give(work);
    }
  }
}

void TicketExecutor::FinishForIdleThreads(const std::stop_token& stop) {
  base::SetThreadName(absl::StrCat(kThreadPrefix, options_.name, "-done"));
  while (const std::shared_ptr<Work> work = idle_->TakeDone(stop)) Finish(work.get());
}

std::shared_ptr<TicketExecutor::Work> TicketExecutor::TakeWork(Serves serves,
                                                               const std::stop_token& stop,
                                                               bool* first) {
  while (true) {
    std::vector<std::shared_ptr<Work>> over;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    auto taken = queue_.end();
    const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (producer_ == nullptr) return false;
      std::erase_if(queue_, [&over](Queued& queued) {
        if (!queued.ready || queued.work->next < queued.work->count) return false;
        over.push_back(queued.work);
        return true;
      });
      taken = std::find_if(queue_.begin(), queue_.end(), [&](const Queued& queued) {
        const bool own =
            serves == Serves::kAll || queued.work->ticket.guarded == (serves == Serves::kGuarded);
        return own && queued.expected && (queued.ready || !queued.preparing);
      });
      return taken != queue_.end() || !over.empty();
    };
    if (!changed_.Wait(mutex_, stop, available)) return nullptr;
    if (taken == queue_.end()) continue;
    *first = !taken->preparing;
    if (*first) {
      taken->preparing = true;
      taken->work->producer = producer_;
    }
    return taken->work;
  }
}

absl::Status TicketExecutor::Allocate(Work* work) {
  try {
    work->batch = std::make_unique<Batch>(work->producer->Allocate(
        work->ticket, work->callbacks.slabs ? work->callbacks.slabs : NewSlab));
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("ticket ", work->ticket.id, ": ", options_.name, " has no memory for its ",
                     work->ticket.slots.count, " samples; give it more, or lower the batch size"));
  } catch (...) {
    return Thrown(absl::StrCat("ticket ", work->ticket.id));
  }
}

void TicketExecutor::Prepare(Work* work) {
  work->callbacks.on_started(work->ticket);
  work->started = clock_.Now();
  absl::Status status = work->producer->Check(work->ticket);
  if (status.ok()) status = Allocate(work);
  const int64_t count = status.ok() ? work->ticket.slots.count : 0;
  work->count = count;
  if (!status.ok()) {
    const base::MutexLock lock(work->mutex);
    work->status = std::move(status);
  }
  // A child process is worth more samples than a thread takes at once.
  work->chunk = work->ticket.guarded
                    ? std::max<int64_t>((count + options_.threads - 1) / options_.threads, 1)
                    : std::clamp<int64_t>(count / (int64_t{4} * options_.threads), 1, kMaxChunk);
  work->remaining = count;
  const base::MutexLock lock(mutex_);
  const auto queued = Find(work->handle);
  if (count == 0) {
    queue_.erase(queued);
  } else {
    queued->ready = true;
  }
  changed_.NotifyAll();
}

absl::Status TicketExecutor::ProduceHere(Work* work, int64_t index, GuardedSamples* made) {
  try {
    std::optional<BadSample> bad;
    absl::Status status =
        work->gathered == nullptr
            ? work->producer->Produce(work->batch.get(), index, &bad)
            : work->producer->ProduceGathered(*work->gathered, work->batch.get(), index, &bad);
    if (bad.has_value()) made->bad_samples.push_back(*std::move(bad));
    return status;
  } catch (...) {
    const int64_t id = work->batch->sample_ids[static_cast<size_t>(index)];
    return Thrown(absl::StrCat("ticket ", work->ticket.id, ", ",
                               work->producer->DescribeSample(work->ticket.split, id)));
  }
}

absl::Status TicketExecutor::ProduceInChildren(Work* work, int64_t begin, int64_t end,
                                               const std::stop_token& stop, GuardedSamples* made) {
  HETERO_ASSIGN_OR_RETURN(GuardedSamples part,
                          ProduceGuarded(*work->producer, work->batch.get(), begin, end,
                                         DefaultGuardLimits(), clock_, stop));
  std::move(part.bad_samples.begin(), part.bad_samples.end(),
            std::back_inserter(made->bad_samples));
  std::move(part.fatal.begin(), part.fatal.end(), std::back_inserter(made->fatal));
  return absl::OkStatus();
}

bool TicketExecutor::ProduceSamples(Work* work, const std::stop_token& stop) {
  const int64_t count = work->count;
  const base::Duration cpu_before = base::ThreadCpuTime();
  const WorkTimer timer(clock_);
  GuardedSamples made;
  absl::Status status;
  int64_t done = 0;
  for (int64_t begin = work->next.fetch_add(work->chunk); begin < count;
       begin = work->next.fetch_add(work->chunk)) {
    const int64_t end = std::min(begin + work->chunk, count);
    for (int64_t i = begin; i < end;) {
      if (stop.stop_requested()) return false;
      const int64_t next = work->ticket.guarded ? end : i + 1;
      // Nobody wants the rest of what has failed.
      if (!work->failed) {
        absl::Status result = work->ticket.guarded ? ProduceInChildren(work, i, next, stop, &made)
                                                   : ProduceHere(work, i, &made);
        if (!result.ok()) {
          work->failed = true;
          status = std::move(result);
        }
      }
      done += next - i;
      i = next;
    }
  }
  if (work->ticket.guarded && stop.stop_requested()) return false;
  if (done == 0) return false;  // came too late: another thread may be finishing it already
  {
    const base::MutexLock lock(work->mutex);
    work->cpu_seconds += base::ToSeconds(base::ThreadCpuTime() - cpu_before);
    timer.AddTo(&work->worked, &work->read);
    std::move(made.bad_samples.begin(), made.bad_samples.end(),
              std::back_inserter(work->bad_samples));
    std::move(made.fatal.begin(), made.fatal.end(), std::back_inserter(work->fatal));
    work->status.Update(status);
  }
  return work->remaining.fetch_sub(done) == done;
}

void TicketExecutor::Finish(Work* work) {
  busy_.OnDone();
  absl::Status status;
  std::vector<BadSample> bad_samples;
  std::vector<FatalSample> fatal;
  double cpu_seconds = 0;
  double read_share = 0;
  {
    const base::MutexLock lock(work->mutex);
    status = std::move(work->status);
    bad_samples = std::move(work->bad_samples);
    fatal = std::move(work->fatal);
    cpu_seconds = work->cpu_seconds;
    read_share = work->read_share();
  }
  if (!status.ok()) {
    work->batch.reset();  // its memory goes back here, and not on an idle thread
    return work->callbacks.on_done(work->ticket, std::move(status));
  }
  Batch& batch = *work->batch;
  std::sort(bad_samples.begin(), bad_samples.end(),
            [](const BadSample& a, const BadSample& b) { return a.slot < b.slot; });
  batch.bad_samples = std::move(bad_samples);
  batch.fatal = std::move(fatal);
  batch.cpu_seconds = cpu_seconds;
  batch.work_seconds = base::ToSeconds(clock_.Now() - work->started);
  batch.queued_seconds = base::ToSeconds(work->started - work->asked);
  batch.read_seconds = batch.work_seconds * read_share;
  batch.producer = options_.name;
  work->callbacks.on_done(work->ticket, std::move(work->batch));
}

}  // namespace hetero::feed
