#include "runtime/feed/ticket_executor.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace hetero::feed {
namespace {

constexpr int64_t kMaxChunk =
    16;  // samples taken at once, so that tiny ones do not fight for a counter

double ThreadCpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void SetUpThread(const TicketExecutor::Options& options) {
  base::SetThreadName(options.name);
  if (!options.low_priority) return;
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
    log::Warning("no idle priority for input threads; they compete with training",
                 {{"threads", options.name}});
  }
}

}  // namespace

struct TicketExecutor::Work {
  Handle handle = 0;
  Ticket ticket;
  Callbacks callbacks;

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
  double cpu_seconds ABSL_GUARDED_BY(mutex) = 0;
};

TicketExecutor::TicketExecutor(Options options, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), busy_(clock) {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Loop(stop); });
  }
}

TicketExecutor::~TicketExecutor() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void TicketExecutor::SetProducer(const BatchProducer* producer) {
  const base::MutexLock lock(mutex_);
  producer_ = producer;
  changed_.NotifyAll();
}

TicketExecutor::Handle TicketExecutor::Submit(const Ticket& ticket, Callbacks callbacks) {
  auto work = std::make_shared<Work>();
  work->ticket = ticket;
  work->callbacks = std::move(callbacks);
  busy_.OnAccepted();
  const base::MutexLock lock(mutex_);
  work->handle = next_handle_++;
  queue_.push_back({.work = work});
  changed_.NotifyOne();
  return work->handle;
}

bool TicketExecutor::Cancel(Handle handle) {
  const base::MutexLock lock(mutex_);
  const bool dropped = std::erase_if(queue_, [&](const Queued& queued) {
                         return queued.work->handle == handle && !queued.preparing;
                       }) > 0;
  if (dropped) busy_.OnDone();
  return dropped;
}

void TicketExecutor::Loop(std::stop_token stop) {
  SetUpThread(options_);
  while (!stop.stop_requested()) {
    bool first = false;
    const std::shared_ptr<Work> work = TakeWork(stop, &first);
    if (work == nullptr) return;
    if (first) Prepare(work.get());
    ProduceSamples(work.get(), stop);
  }
}

std::shared_ptr<TicketExecutor::Work> TicketExecutor::TakeWork(std::stop_token stop, bool* first) {
  const base::MutexLock lock(mutex_);
  Queued* taken = nullptr;
  const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (producer_ == nullptr) return false;
    std::erase_if(queue_, [](const Queued& queued) {
      return queued.ready && queued.work->next >= queued.work->count;
    });
    const auto it = std::find_if(queue_.begin(), queue_.end(), [](const Queued& queued) {
      return queued.ready || !queued.preparing;
    });
    if (it == queue_.end()) return false;
    taken = &*it;
    return true;
  };
  if (!changed_.Wait(mutex_, stop, available)) return nullptr;
  *first = !taken->preparing;
  if (*first) {
    taken->preparing = true;
    taken->work->producer = producer_;
  }
  return taken->work;
}

void TicketExecutor::Prepare(Work* work) {
  work->callbacks.on_started(work->ticket);
  work->started = clock_.Now();
  absl::Status status = work->producer->Check(work->ticket);
  const int64_t count = status.ok() ? work->ticket.slots.count : 0;
  work->count = count;
  if (status.ok()) {
    work->batch = std::make_unique<Batch>(work->producer->Allocate(
        work->ticket, work->callbacks.slabs ? work->callbacks.slabs : NewSlab));
  } else {
    const base::MutexLock lock(work->mutex);
    work->status = std::move(status);
  }
  work->chunk = std::clamp<int64_t>(count / (int64_t{4} * options_.threads), 1, kMaxChunk);
  work->remaining = count;
  const base::MutexLock lock(mutex_);
  const auto queued = std::find_if(queue_.begin(), queue_.end(),
                                   [&](const Queued& one) { return one.work.get() == work; });
  if (count == 0) {
    queue_.erase(queued);
  } else {
    queued->ready = true;
  }
  changed_.NotifyAll();
}

void TicketExecutor::ProduceSamples(Work* work, std::stop_token stop) {
  const int64_t count = work->count;
  if (count == 0) return Finish(work);
  const double cpu_before = ThreadCpuSeconds();
  std::vector<BadSample> bad_samples;
  absl::Status status;
  int64_t done = 0;
  for (int64_t begin = work->next.fetch_add(work->chunk); begin < count;
       begin = work->next.fetch_add(work->chunk)) {
    const int64_t end = std::min(begin + work->chunk, count);
    for (int64_t i = begin; i < end; ++i, ++done) {
      if (stop.stop_requested()) return;
      if (work->failed) continue;  // nobody wants the rest of it
      std::optional<BadSample> bad;
      absl::Status result = work->producer->Produce(work->batch.get(), i, &bad);
      if (bad.has_value()) bad_samples.push_back(*std::move(bad));
      if (!result.ok()) {
        work->failed = true;
        status = std::move(result);
      }
    }
  }
  if (done == 0) return;  // came too late: another thread may be finishing it already
  {
    const base::MutexLock lock(work->mutex);
    work->cpu_seconds += ThreadCpuSeconds() - cpu_before;
    std::move(bad_samples.begin(), bad_samples.end(), std::back_inserter(work->bad_samples));
    work->status.Update(status);
  }
  if (work->remaining.fetch_sub(done) == done) Finish(work);
}

void TicketExecutor::Finish(Work* work) {
  busy_.OnDone();
  absl::Status status;
  std::vector<BadSample> bad_samples;
  double cpu_seconds = 0;
  {
    const base::MutexLock lock(work->mutex);
    status = std::move(work->status);
    bad_samples = std::move(work->bad_samples);
    cpu_seconds = work->cpu_seconds;
  }
  if (!status.ok()) return work->callbacks.on_done(work->ticket, std::move(status));
  Batch& batch = *work->batch;
  std::sort(bad_samples.begin(), bad_samples.end(),
            [](const BadSample& a, const BadSample& b) { return a.slot < b.slot; });
  batch.bad_samples = std::move(bad_samples);
  batch.cpu_seconds = cpu_seconds;
  batch.work_seconds = base::ToSeconds(clock_.Now() - work->started);
  batch.producer = options_.name;
  work->callbacks.on_done(work->ticket, std::move(work->batch));
}

}  // namespace hetero::feed
