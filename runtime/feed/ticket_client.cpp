#include "runtime/feed/ticket_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/thread.h"
#include "runtime/feed/batch_finisher.h"
#include "runtime/feed/region_socket.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_plan.h"
#include "runtime/feed/trainer_stream.h"
#include "runtime/feed/wait_causes.h"
#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;

constexpr int kUnlimited = -1;
constexpr int kFrameBytes = 4 << 20;      // of HTTP/2
constexpr int kLookaheadBytes = 8 << 20;  // that a worker may send before they are asked for
constexpr base::Duration kTick = milliseconds(25);
constexpr base::Backoff::Options kRedial{.initial = milliseconds(50), .max = milliseconds(1000)};

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kUnlimited);
  arguments.SetMaxSendMessageSize(kUnlimited);
  // The default of 16 KB a frame would cut a batch into hundreds of pieces.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  // gRPC's own pause before it connects again must not exceed ours.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A cut network closes no connection: pings find out.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // pods are neighbours
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

class Impl : public TicketClient {
 public:
  Impl(Options options, const job::Schedule* schedule, const BatchProducer* producer,
       base::Clock& clock);
  ~Impl() override;

  absl::StatusOr<std::unique_ptr<Batch>> Next(std::stop_token stop) override;
  StreamStats stats() const override;
  void SetRoster(const std::vector<WorkerAddress>& workers) override;
  PlacementState placement() const override;

 private:
  struct Worker {
    WorkerAddress address;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<TrainerStream> stream;  // null while no dial is under way
    base::Backoff backoff{kRedial};
    base::Instant redial_at;
  };

  // All of these with mutex_ held.
  bool Apply(const Window::Event& event);
  void Perform(const Window::Actions& actions);
  void IssueLocally(int64_t ticket);
  // The trainer's part of a worker's batch; it comes back through OnFrame.
  void FinishBatch(ProducerId id, std::unique_ptr<Batch> half);
  void ChoosePlacement();
  // Whether the own cores serve beside the workers from now on.
  void JudgeLocalShare();
  void DialWhereDue();
  void Dial(ProducerId id, Worker* worker);
  void RemoveWorker(ProducerId id);
  // Lets a worker of this host put its batches where they can be read in place.
  void ShareMemory(const Worker& worker);
  absl::StatusOr<std::unique_ptr<Batch>> TakeHead();

  void OnUp(ProducerId id);
  void OnFrame(ProducerId id, Frame frame);
  void OnDown(ProducerId id, const absl::Status& status);
  void Drive(std::stop_token stop);

  const Options options_;
  const TicketPlan plan_;
  base::Clock& clock_;
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials_;

  // Guards everything below. The stream's and the executor's locks are taken inside it, never
  // around.
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;  // the head filled or failed, or a stream ended
  Window window_;
  WaitJournal journal_;
  PlacementProbe placement_;
  LocalShareRule share_;
  Window::Local local_mode_ = Window::Local::kLastResort;
  const base::Instant started_;
  std::map<int64_t, std::unique_ptr<Batch>> batches_;  // arrived, not consumed
  std::map<ProducerId, Worker> workers_;
  // Of workers that left while their stream was still ending. gRPC joins its threads when the last
  // channel goes, so that must not happen on one of them: the driver lets go of these.
  std::map<ProducerId, std::shared_ptr<grpc::Channel>> ending_;
  std::vector<std::shared_ptr<grpc::Channel>> ended_;
  std::map<int64_t, TicketExecutor::Handle> local_tickets_;
  ProducerId next_id_ = kLocalProducer + 1;
  int live_streams_ = 0;  // until on_down
  bool closing_ = false;
  StreamStats stats_;

  std::unique_ptr<TicketExecutor> local_;    // null when this host serves no tickets
  std::unique_ptr<BatchFinisher> finisher_;  // null when workers do the whole pipeline
  std::unique_ptr<TicketExecutor> finishing_;
  std::jthread driver_;
};

Impl::Impl(Options options, const job::Schedule* schedule, const BatchProducer* producer,
           base::Clock& clock)
    : options_(std::move(options)),
      plan_(schedule, options_.generation, options_.rank, options_.first_batch),
      clock_(clock),
      credentials_(base::MakeChannelCredentials(options_.tls)),
      window_({.tickets = plan_.size(),
               .byte_budget = options_.byte_budget,
               .max_capacity = options_.max_window,
               .batch_bytes =
                   producer == nullptr ? 0 : producer->sample_bytes() * plan_.largest_count(),
               .local = producer != nullptr && options_.local_threads > 0
                            ? Window::Local::kLastResort
                            : Window::Local::kOff,
               .is_empty = [this](int64_t id) { return plan_.At(id).slots.count == 0; }}),
      journal_(clock.Now()),
      placement_(options_.placement),
      started_(clock.Now()) {
  if (!credentials_.ok())
    log::Error("no CPU worker can be reached", {{"error", credentials_.status().message()}});
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

Impl::~Impl() {
  driver_ = {};
  std::unique_lock lock(mutex_);
  closing_ = true;
  for (auto& [id, worker] : workers_) {
    if (worker.stream != nullptr) worker.stream->Cancel();
  }
  changed_.wait(lock, [this] { return live_streams_ == 0; });
  lock.unlock();
  local_.reset();
  finishing_.reset();
}

absl::StatusOr<std::unique_ptr<Batch>> Impl::Next(std::stop_token stop) {
  if (!credentials_.ok()) return credentials_.status();
  std::unique_lock lock(mutex_);
  if (window_.head_state() == Window::HeadState::kWaiting) {
    const base::Instant before = clock_.Now();
    journal_.OnWaitBegan(before);
    const bool there = changed_.wait(
        lock, stop, [this] { return window_.head_state() != Window::HeadState::kWaiting; });
    const base::Instant after = clock_.Now();
    stats_.wait_seconds += base::ToSeconds(after - before);
    stats_.waits.Add(journal_.OnWaitEnded(window_.head(), after));
    if (!there) return absl::CancelledError("stopped while waiting for a batch");
  }
  return TakeHead();
}

absl::StatusOr<std::unique_ptr<Batch>> Impl::TakeHead() {
  const Window::HeadState state = window_.head_state();
  if (state == Window::HeadState::kEnd) return absl::OutOfRangeError("every batch was consumed");
  const int64_t id = window_.head();
  const Ticket ticket = plan_.At(id);
  if (state == Window::HeadState::kFailed) {
    const absl::Status error = window_.head_error();
    return absl::Status(error.code(),
                        absl::StrCat("nobody could produce the batch of rank ", options_.rank,
                                     ", epoch ", ticket.epoch, ", step ", ticket.step, " after ",
                                     Window::kMaxFailures, " attempts; last: ", error.message()));
  }
  std::unique_ptr<Batch> batch;
  if (auto node = batches_.extract(id)) {
    batch = std::move(node.mapped());
    stats_.bytes_waiting -= batch->images.size();
  } else {
    batch = std::make_unique<Batch>();  // a share without samples
    batch->ticket = ticket;
  }
  journal_.Forget(id);
  ++stats_.batches;
  stats_.samples += batch->count();
  stats_.bytes += batch->images.size();
  Apply(Window::Consumed{});
  return batch;
}

StreamStats Impl::stats() const {
  const std::lock_guard lock(mutex_);
  StreamStats stats = stats_;
  stats.tickets_reissued = window_.reissued();
  stats.tickets_moved = window_.moved();
  stats.duplicates_dropped = window_.duplicates();
  return stats;
}

void Impl::SetRoster(const std::vector<WorkerAddress>& roster) {
  const std::lock_guard lock(mutex_);
  std::vector<ProducerId> gone;
  for (const auto& [id, worker] : workers_) {
    if (std::find(roster.begin(), roster.end(), worker.address) == roster.end()) gone.push_back(id);
  }
  for (const ProducerId id : gone) RemoveWorker(id);
  for (const WorkerAddress& address : roster) {
    const bool known = std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
      return entry.second.address == address;
    });
    if (known || !credentials_.ok()) continue;
    const ProducerId id = next_id_++;
    Worker& worker = workers_[id];
    worker.address = address;
    worker.channel = MakeChannel(address.address, *credentials_);
    worker.redial_at = clock_.Now();
    Apply(Window::WorkerAdded{id});
  }
  DialWhereDue();
}

void Impl::RemoveWorker(ProducerId id) {
  Worker& worker = workers_.at(id);
  log::Info("CPU worker left", {{"worker", worker.address.name}});
  if (worker.stream != nullptr) {
    worker.stream->Cancel();
    ending_[id] = worker.channel;
  }
  workers_.erase(id);
  Apply(Window::WorkerRemoved{id});
}

bool Impl::Apply(const Window::Event& event) {
  const int64_t reissued = window_.reissued();
  const base::Instant now = clock_.Now();
  const Window::Actions actions = window_.Apply(event, now);
  journal_.OnWorkers(window_.connected_workers(), now);
  Perform(actions);
  if (window_.reissued() > reissued) {
    log::Info("tickets issued again", {{"rank", options_.rank},
                                       {"tickets", window_.reissued() - reissued},
                                       {"head", window_.head()}});
  }
  if (window_.head_state() != Window::HeadState::kWaiting) changed_.notify_all();
  return actions.accepted;
}

void Impl::Perform(const Window::Actions& actions) {
  std::map<ProducerId, TicketRequest> requests;
  for (const auto& [id, ticket] : actions.cancel) {
    if (id != kLocalProducer) {
      requests[id].cancel.push_back(ticket);
    } else if (const auto node = local_tickets_.extract(ticket)) {
      local_->Cancel(node.mapped());
    }
  }
  for (const auto& [id, ticket] : actions.issue) {
    if (id == kLocalProducer) {
      IssueLocally(ticket);
    } else {
      requests[id].issue.push_back(plan_.At(ticket));
      requests[id].issue.back().left_to_trainer = placement_.left();
    }
  }
  for (const ProducerId id : actions.reset) {
    const auto it = workers_.find(id);
    if (it != workers_.end() && it->second.stream != nullptr) it->second.stream->Cancel();
  }
  for (const auto& [id, request] : requests) {
    const auto it = workers_.find(id);
    if (it != workers_.end() && it->second.stream != nullptr) it->second.stream->Send(request);
  }
}

void Impl::IssueLocally(int64_t ticket) {
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [this](const Ticket& started) {
    OnFrame(kLocalProducer, {.kind = Frame::Kind::kStarted, .ticket = started});
  };
  callbacks.on_done = [this](const Ticket& done, absl::StatusOr<std::unique_ptr<Batch>> batch) {
    Frame frame{.kind = Frame::Kind::kBatch, .ticket = done};
    if (batch.ok()) {
      frame.batch = *std::move(batch);
    } else {
      frame.kind = Frame::Kind::kFailed;
      frame.error = batch.status();
    }
    OnFrame(kLocalProducer, std::move(frame));
  };
  local_tickets_[ticket] = local_->Submit(plan_.At(ticket), std::move(callbacks));
}

void Impl::FinishBatch(ProducerId id, std::unique_ptr<Batch> half) {
  Ticket whole = half->ticket;
  whole.left_to_trainer = 0;
  finisher_->Add(std::move(half));
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [](const Ticket&) {};
  callbacks.on_done = [this, id](const Ticket& done, absl::StatusOr<std::unique_ptr<Batch>> batch) {
    const std::shared_ptr<const Batch> half_done = finisher_->Take(done.id);
    Frame frame{.kind = Frame::Kind::kBatch, .ticket = done};
    if (batch.ok() && half_done != nullptr) {
      frame.batch = *std::move(batch);
      frame.batch->work_seconds += half_done->work_seconds;
      frame.batch->cpu_seconds += half_done->cpu_seconds;
    } else {
      frame.kind = Frame::Kind::kFailed;
      frame.error =
          batch.ok() ? absl::CancelledError("the same ticket was finished before") : batch.status();
    }
    OnFrame(id, std::move(frame));
  };
  finishing_->Submit(whole, std::move(callbacks));
}

void Impl::ChoosePlacement() {
  if (!placement_.due()) return;
  const double elapsed = base::ToSeconds(clock_.Now() - started_) - stats_.wait_seconds;
  const double demand = elapsed > 0 ? static_cast<double>(stats_.samples) / elapsed : 0;
  const auto batch = static_cast<double>(plan_.largest_count());
  // Where batches wait for their way more than for their making, what came is what the way allows.
  const WaitCauses& waits = stats_.waits;
  const bool network = waits.transfer > waits.total() / 2;
  const double bytes =
      network ? static_cast<double>(stats_.bytes) / base::ToSeconds(clock_.Now() - started_) : 0;
  placement_.Choose(window_.worker_rate() * batch, demand, bytes);
  const PlacementState state = placement_.state();
  log::Info("placement chosen", {{"rank", options_.rank},
                                 {"leftToTrainer", state.choice->left},
                                 {"reason", state.choice->reason}});
}

void Impl::JudgeLocalShare() {
  if (options_.local_share == LocalShare::kLastResort || local_ == nullptr) return;
  const base::Instant now = clock_.Now();
  const bool shares = share_.Shares({.waited = stats_.wait_seconds + journal_.WaitingSeconds(now),
                                     .consumed = stats_.batches,
                                     .worker_rate = window_.worker_rate(),
                                     .late = window_.waits_for_late_local()},
                                    now);
  const auto mode = shares ? Window::Local::kShares : Window::Local::kLastResort;
  if (mode == local_mode_) return;
  local_mode_ = mode;
  log::Info(shares ? "own cores serve beside the CPU workers" : "own cores rest",
            {{"rank", options_.rank}, {"workersPerSecond", window_.worker_rate()}});
  Apply(Window::LocalChanged{mode});
}

PlacementState Impl::placement() const {
  const std::lock_guard lock(mutex_);
  return placement_.state();
}

void Impl::DialWhereDue() {
  const base::Instant now = clock_.Now();
  for (auto& [id, worker] : workers_) {
    if (worker.stream == nullptr && worker.redial_at <= now) Dial(id, &worker);
  }
}

void Impl::Dial(ProducerId id, Worker* worker) {
  ++live_streams_;
  TrainerStream::Callbacks callbacks;
  callbacks.on_up = [this, id] { OnUp(id); };
  callbacks.on_frame = [this, id](Frame frame) { OnFrame(id, std::move(frame)); };
  callbacks.on_down = [this, id](const absl::Status& status) { OnDown(id, status); };
  worker->stream = TrainerStream::Dial(worker->channel, std::move(callbacks));
}

void Impl::ShareMemory(const Worker& worker) {
  const std::string path = RegionSocketPath(worker.address.address);
  if (path.empty() || worker.stream == nullptr) return;
  const absl::StatusOr<std::shared_ptr<TrainerRegion>> region =
      TrainerRegion::Create(options_.byte_budget + options_.byte_budget / 4);
  const absl::Status sent = region.ok() ? SendRegion(path, **region) : region.status();
  if (sent.ok()) return worker.stream->Share(*region);
  log::Info("batches are sent, not shared",
            {{"worker", worker.address.name}, {"reason", sent.message()}});
}

void Impl::OnUp(ProducerId id) {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(id);
  if (it == workers_.end() || closing_) return;
  it->second.backoff.Reset();
  ShareMemory(it->second);
  log::Info("CPU worker up", {{"worker", it->second.address.name}, {"rank", options_.rank}});
  Apply(Window::StreamUp{id});
}

void Impl::OnFrame(ProducerId id, Frame frame) {
  const std::lock_guard lock(mutex_);
  const Ticket& ticket = frame.ticket;
  if (closing_ || ticket.generation != options_.generation) return;
  if (id == kLocalProducer && frame.kind != Frame::Kind::kStarted) local_tickets_.erase(ticket.id);
  const auto worker = workers_.find(id);
  const std::string& name = worker == workers_.end() ? "local" : worker->second.address.name;
  if (ticket.id < 0 || ticket.id >= plan_.size()) return;
  // What comes back from the finisher is whole again.
  Ticket expected = plan_.At(ticket.id);
  expected.left_to_trainer = ticket.left_to_trainer;
  if (ticket != expected || (ticket.left_to_trainer != 0 && finisher_ == nullptr)) {
    frame.kind = Frame::Kind::kFailed;
    frame.error = absl::InternalError("the answer is to another ticket than the one issued");
  }
  switch (frame.kind) {
    case Frame::Kind::kStarted:
      journal_.OnStarted(id, ticket.id, clock_.Now());
      Apply(Window::Started{id, ticket.id});
      return;
    case Frame::Kind::kFailed:
      if (frame.damaged) ++stats_.batches_damaged;
      log::Warning("a ticket failed",
                   {{"worker", name}, {"step", ticket.step}, {"error", frame.error.message()}});
      Apply(Window::Failed{id, ticket.id, frame.error});
      return;
    case Frame::Kind::kBatch:
      break;
  }
  if (id != kLocalProducer && frame.batch->producer.empty()) {
    placement_.OnBatch(*frame.batch);
    ChoosePlacement();
  }
  if (ticket.left_to_trainer != 0) return FinishBatch(id, std::move(frame.batch));
  frame.batch->producer = name;
  const double work_seconds = frame.batch->work_seconds;
  if (Apply(Window::Arrived{.producer = id,
                            .ticket = ticket.id,
                            .bytes = frame.batch->images.size(),
                            .work = base::FromSeconds(work_seconds)})) {
    stats_.bytes_waiting += frame.batch->images.size();
    if (frame.batch->images.shared()) ++stats_.batches_in_place;
    journal_.OnArrived(id, ticket.id, work_seconds, clock_.Now());
    batches_[ticket.id] = std::move(frame.batch);
  }
}

void Impl::OnDown(ProducerId id, const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(id);
  if (it != workers_.end() && !closing_) {
    Worker& worker = it->second;
    log::Warning("stream to CPU worker broke", {{"worker", worker.address.name},
                                                {"address", worker.address.address},
                                                {"error", status.ToString()}});
    // A frame's own header can be what was damaged; then the whole stream is given up.
    if (absl::IsDataLoss(status)) ++stats_.batches_damaged;
    worker.stream.reset();
    worker.redial_at = clock_.Now() + worker.backoff.Next();
    Apply(Window::StreamDown{id});
  }
  if (auto node = ending_.extract(id)) ended_.push_back(std::move(node.mapped()));
  --live_streams_;
  changed_.notify_all();
}

void Impl::Drive(std::stop_token stop) {
  base::SetThreadName("feed");
  do {
    std::vector<std::shared_ptr<grpc::Channel>> ended;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
    DialWhereDue();
    Apply(Window::Tick{});
    JudgeLocalShare();
  } while (clock_.SleepFor(kTick, stop));
}

}  // namespace

std::unique_ptr<TicketClient> TicketClient::Start(Options options, const job::Schedule* schedule,
                                                  const BatchProducer* producer,
                                                  base::Clock& clock) {
  return std::make_unique<Impl>(std::move(options), schedule, producer, clock);
}

}  // namespace hetero::feed
