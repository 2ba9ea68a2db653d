#include "runtime/feed/ticket_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/thread.h"
#include "runtime/feed/heap.h"
#include "runtime/feed/ticket_client_impl.h"

namespace hetero::feed {
namespace {

constexpr base::Duration kDriverTick = std::chrono::milliseconds(25);

std::optional<int64_t> SuspectTicket(const TicketClient::Options& options) {
  if (!options.suspect_batch.has_value()) return std::nullopt;
  return *options.suspect_batch - options.first_batch;
}

// Of one sample as a worker may send it: before a cut the picture may be much larger than after it.
int64_t MostSampleBytes(const TicketClient::Options& options, const BatchProducer* producer) {
  int64_t most = producer == nullptr ? 0 : producer->sample_bytes();
  if (options.finisher == nullptr) return most;
  for (const job::Split split : {job::Split::kTrain, job::Split::kValidation}) {
    if (split == job::Split::kValidation && !options.finisher->has_validation()) continue;
    for (const CutCost& cut : options.placement.cuts) {
      most = std::max(most, options.finisher->cut(split).front(cut.left).output_bytes());
    }
  }
  return most;
}

}  // namespace

TicketClientImpl::TicketClientImpl(Options options, const job::Schedule* schedule,
                                   const BatchProducer* producer, base::Clock& clock)
    : options_(std::move(options)),
      plan_(schedule, options_.generation, options_.rank, options_.first_batch),
      clock_(clock),
      producer_(producer),
      credentials_(base::MakeChannelCredentials(options_.tls)),
      started_(clock.Now()),
      window_({.tickets = plan_.size(),
               .byte_budget = options_.byte_budget,
               .max_capacity = options_.max_window,
               .batch_bytes =
                   producer == nullptr ? 0 : producer->sample_bytes() * plan_.largest_count(),
               .local = producer != nullptr && options_.local_threads > 0
                            ? Window::Local::kLastResort
                            : Window::Local::kOff,
               .is_empty = [this](int64_t id) { return plan_.At(id).slots.count == 0; },
               .suspect = SuspectTicket(options_),
               .start = Window::StartOf(options_.rank)}),
      journal_(started_),
      placement_(options_.placement),
      links_({.credentials = credentials_.ok() ? *credentials_ : nullptr,
              .transports = options_.transports,
              .secured = !options_.tls.plain_text,
              .slabs = options_.slabs,
              .moves_shared = options_.moves_shared,
              .byte_budget = options_.byte_budget,
              .batch_bytes = plan_.largest_count() * MostSampleBytes(options_, producer),
              .start = Window::StartOf(options_.rank)},
             {.on_up = [this](ProducerId id) { OnUp(id); },
              .on_frame = [this](ProducerId id, Frame frame) { OnFrame(id, std::move(frame)); },
              .on_down = [this](ProducerId id, const auto& ending) { OnDown(id, ending); }},
             clock) {
  if (!credentials_.ok())
    log::Error("no CPU worker can be reached", {{"error", credentials_.status().message()}});
  if (producer != nullptr) fatal_ = producer->avoided();
  if (producer != nullptr && options_.local_threads > 0) {
    local_ = std::make_unique<TicketExecutor>(
        TicketExecutor::Options{
            .name = "local", .threads = options_.local_threads, .low_priority = true},
        clock_);
    local_->SetProducer(producer);
  }
  if (options_.finisher != nullptr) {
    finisher_ = std::make_unique<BatchFinisher>(*options_.finisher);
    finishing_ = std::make_unique<TicketExecutor>(
        TicketExecutor::Options{.name = "finish", .threads = options_.finisher_threads}, clock_);
    finishing_->SetProducer(finisher_.get());
  }
  driver_ = std::jthread([this](std::stop_token stop) { Drive(stop); });
}

TicketClientImpl::~TicketClientImpl() {
  driver_ = {};
  base::MutexLock lock(mutex_);
  closing_ = true;
  links_.Close();
  while (links_.live() > 0) changed_.Wait(mutex_);
  lock.Unlock();
  local_.reset();
  finishing_.reset();
}

absl::StatusOr<std::unique_ptr<Batch>> TicketClientImpl::Next(std::stop_token stop) {
  if (!credentials_.ok()) return credentials_.status();
  const base::MutexLock lock(mutex_);
  if (window_.head_state() == Window::HeadState::kWaiting) {
    const base::Instant before = clock_.Now();
    journal_.OnWaitBegan(before);
    const bool there = changed_.Wait(mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return window_.head_state() != Window::HeadState::kWaiting;
    });
    const base::Instant after = clock_.Now();
    stats_.wait_seconds += base::ToSeconds(after - before);
    stats_.waits.Add(journal_.OnWaitEnded(window_.head(), after));
    if (!there) return absl::CancelledError("stopped while waiting for a batch");
  }
  return TakeHead();
}

absl::StatusOr<std::unique_ptr<Batch>> TicketClientImpl::TakeHead() {
  const Window::HeadState state = window_.head_state();
  if (state == Window::HeadState::kEnd) return absl::OutOfRangeError("every batch was consumed");
  const int64_t id = window_.head();
  const Ticket ticket = plan_.At(id);
  if (state == Window::HeadState::kFailed) {
    const absl::Status error = window_.head_error();
    return absl::Status(
        error.code(),
        absl::StrCat("nobody could produce the batch of rank ", options_.rank, ", epoch ",
                     ticket.epoch, ", step ", ticket.step, "; last: ", error.message()));
  }
  std::unique_ptr<Batch> batch;
  if (auto node = batches_.extract(id)) {
    batch = std::move(node.mapped());
    stats_.bytes_waiting -= batch->tensor_bytes();
    if (batch->times) {
      batch->times->taken = clock_.Now();
      batch->times->window = batch->times->taken - batch->times->received;
    }
  } else {
    batch = std::make_unique<Batch>();  // a share without samples
    batch->ticket = ticket;
  }
  journal_.Forget(id);
  lives_.Forget(id);
  ++stats_.batches;
  stats_.samples += batch->count();
  stats_.bytes += batch->tensor_bytes();
  Apply(Window::Consumed{});
  return batch;
}

StreamStats TicketClientImpl::stats() const {
  const base::MutexLock lock(mutex_);
  StreamStats stats = stats_;
  stats.tickets_reissued = window_.reissued();
  stats.tickets_moved = window_.moved();
  stats.duplicates_dropped = window_.duplicates();
  return stats;
}

std::vector<WorkerFault> TicketClientImpl::TakeFaults() {
  const base::MutexLock lock(mutex_);
  return std::exchange(faults_, {});
}

PlacementState TicketClientImpl::placement() const {
  const base::MutexLock lock(mutex_);
  return placement_.state();
}

std::map<std::string_view, int64_t> TicketClientImpl::batches_by_transport() const {
  const base::MutexLock lock(mutex_);
  return by_transport_;
}

void TicketClientImpl::Drive(std::stop_token stop) {
  base::SetThreadName("feed");
  do {
    std::vector<std::shared_ptr<grpc::Channel>> unused;  // destroyed without the lock
    const base::MutexLock lock(mutex_);
    unused = links_.TakeUnused();
    links_.DialWhereDue();
    Apply(Window::Tick{});
    JudgeLocalShare();
  } while (clock_.SleepFor(kDriverTick, stop));
}

std::unique_ptr<TicketClient> TicketClient::Start(Options options, const job::Schedule* schedule,
                                                  const BatchProducer* producer,
                                                  base::Clock& clock) {
  KeepFreedMemory();
  return std::make_unique<TicketClientImpl>(std::move(options), schedule, producer, clock);
}

}  // namespace hetero::feed
