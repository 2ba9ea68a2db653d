// The window's events and actions: the deciding half of TicketClient.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "runtime/feed/ticket_client_impl.h"

namespace hetero::feed {

bool TicketClientImpl::Apply(const Window::Event& event) {
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
  if (window_.head_state() != Window::HeadState::kWaiting) changed_.NotifyAll();
  return actions.accepted;
}

void TicketClientImpl::Perform(const Window::Actions& actions) {
  std::map<ProducerId, TicketRequest> requests;
  for (const auto& [id, ticket, guarded] : actions.cancel) {
    if (id != kLocalProducer) {
      requests[id].cancel.push_back(ticket);
    } else if (const auto node = local_tickets_.extract(ticket)) {
      local_->Cancel(node.mapped());
    }
  }
  for (const auto& [id, ticket, guarded] : actions.issue) {
    Ticket issued = plan_.At(ticket);
    issued.guarded = guarded;
    lives_.OnAsked(id, issued, clock_.Now(), clock_.WallNow());
    if (id == kLocalProducer) {
      IssueLocally(issued);
    } else {
      issued.left_to_trainer = placement_.left();
      requests[id].issue.push_back(issued);
    }
  }
  NoteQuarantines(actions);
  for (const ProducerId id : actions.reset) links_.BreakStream(id);
  for (const auto& [id, request] : requests) links_.Send(id, request);
}

void TicketClientImpl::NoteQuarantines(const Window::Actions& actions) {
  for (const auto& [id, error] : actions.quarantined) {
    const WorkerAddress* worker = links_.Find(id);
    const std::string name = worker == nullptr ? "its own cores" : worker->name;
    log::Warning("in quarantine: tickets fail there",
                 {{"worker", name}, {"rank", options_.rank}, {"error", error.message()}});
    Quarantined& noted = quarantined_[id];
    noted = {.fault = {.time = clock_.WallNow(),
                       .what = absl::StrCat(
                           "rank ", options_.rank, " has put ", name,
                           " into quarantine: ", ProducerState::kMostFailures,
                           " batches in a row failed there, the last: ", error.message())},
             .since = clock_.Now()};
    AddFault(noted.fault);
  }
  for (const ProducerId id : actions.recovered) {
    const auto noted = quarantined_.extract(id);
    if (!noted) continue;
    WorkerFault fault = noted.mapped().fault;
    fault.recovery_seconds = base::ToSeconds(clock_.Now() - noted.mapped().since);
    log::Info("out of quarantine", {{"rank", options_.rank}, {"seconds", *fault.recovery_seconds}});
    AddFault(std::move(fault));
  }
}

// Nobody takes them while the head is away.
void TicketClientImpl::AddFault(WorkerFault fault) {
  if (faults_.size() < kMostFaults) faults_.push_back(std::move(fault));
}

void TicketClientImpl::IssueLocally(const Ticket& ticket) {
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
  callbacks.slabs = options_.slabs;
  local_tickets_[ticket.id] = local_->Submit(ticket, std::move(callbacks));
}

void TicketClientImpl::LearnFatal(const Batch& batch) {
  TicketRequest request;
  for (const FatalSample& sample : batch.fatal) {
    const bool known = std::any_of(fatal_.begin(), fatal_.end(), [&](const FatalSample& one) {
      return one.split == sample.split && one.id == sample.id;
    });
    if (known || fatal_.size() >= static_cast<size_t>(FatalSamples::kMost)) continue;
    log::Warning("a sample is bad because it ends processes",
                 {{"rank", options_.rank}, {"sample", sample.id}, {"reason", sample.reason}});
    fatal_.push_back(sample);
    request.fatal.push_back(sample);
    if (producer_ != nullptr) producer_->Avoid(sample);
  }
  if (!request.fatal.empty()) links_.SendToAll(request);
}

void TicketClientImpl::FinishBatch(const BatchFinisher::Half& half) {
  const int64_t ticket = half.batch->ticket.id;
  if (IsThere(ticket) || ticket >= window_.end()) return DropHalf(half);
  if (finisher_->Add(half)) SubmitHalf(half);
}

void TicketClientImpl::SubmitHalf(const BatchFinisher::Half& half) {
  Ticket whole = half.batch->ticket;
  whole.left_to_trainer = 0;
  whole.guarded = false;  // what is left has no file and a shape that is known
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [](const Ticket&) {};
  callbacks.on_done = [this, half](const Ticket& done,
                                   absl::StatusOr<std::unique_ptr<Batch>> batch) {
    Frame frame{.kind = Frame::Kind::kBatch, .ticket = done};
    if (batch.ok()) {
      frame.batch = *std::move(batch);
      frame.batch->work_seconds += half.batch->work_seconds;
      frame.batch->cpu_seconds += half.batch->cpu_seconds;
      frame.batch->read_seconds += half.batch->read_seconds;
      frame.batch->queued_seconds += half.batch->queued_seconds;
    } else {
      frame.kind = Frame::Kind::kFailed;
      frame.error = batch.status();
    }
    OnFrame(half.producer, std::move(frame));
    OnHalfDone(done.id);
  };
  callbacks.slabs = options_.slabs;
  finishing_->Submit(whole, std::move(callbacks));
}

void TicketClientImpl::OnHalfDone(int64_t ticket) {
  const base::MutexLock lock(mutex_);
  if (closing_) return;
  while (const std::optional<BatchFinisher::Half> next = finisher_->DropFirst(ticket)) {
    if (!IsThere(ticket)) return SubmitHalf(*next);
    DropHalf(*next);
  }
}

void TicketClientImpl::DropHalf(const BatchFinisher::Half& half) {
  Apply(Window::Arrived{.producer = half.producer,
                        .ticket = half.batch->ticket.id,
                        .work = base::FromSeconds(half.batch->work_seconds)});
}

void TicketClientImpl::ChoosePlacement() {
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

void TicketClientImpl::JudgeLocalShare() {
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

void TicketClientImpl::SetRoster(const std::vector<WorkerAddress>& workers) {
  if (!credentials_.ok()) return;
  const base::MutexLock lock(mutex_);
  const WorkerLinks::Change change = links_.SetRoster(workers);
  for (const ProducerId id : change.removed) Apply(Window::WorkerRemoved{id});
  for (const ProducerId id : change.added) {
    met_[id] = *links_.Find(id);
    Apply(Window::WorkerAdded{id});
  }
  for (const ProducerId id : change.turned) {
    const WorkerAddress& worker = *links_.Find(id);
    log::Info(worker.leaving ? "CPU worker is about to go: it gets no new work"
                             : "CPU worker stays after all",
              {{"worker", worker.name}, {"rank", options_.rank}});
    Apply(Window::WorkerTurned{id, worker.leaving});
  }
  links_.DialWhereDue();
}

void TicketClientImpl::OnUp(ProducerId id) {
  const base::MutexLock lock(mutex_);
  if (closing_ || !links_.OnUp(id)) return;
  log::Info("CPU worker up", {{"worker", links_.Find(id)->name}, {"rank", options_.rank}});
  if (!fatal_.empty()) links_.Send(id, {.fatal = fatal_});
  Apply(Window::StreamUp{id});
}

void TicketClientImpl::OnDown(ProducerId id, const TrainerStream::Ending& ending) {
  const base::MutexLock lock(mutex_);
  if (links_.OnDown(id, ending) && !closing_) {
    const WorkerAddress& worker = *links_.Find(id);
    log::Warning("stream to CPU worker broke", {{"worker", worker.name},
                                                {"address", worker.address},
                                                {"error", ending.status.ToString()}});
    // A frame's own header can be what was damaged; then the whole stream is given up.
    if (absl::IsDataLoss(ending.status)) ++stats_.batches_damaged;
    Apply(Window::StreamDown{id});
  }
  changed_.NotifyAll();
}

bool TicketClientImpl::CheckAnswer(ProducerId id, Frame* frame) const {
  const Ticket& ticket = frame->ticket;
  // What comes back from the finisher is whole again.
  Ticket expected = plan_.At(ticket.id);
  expected.left_to_trainer = ticket.left_to_trainer;
  expected.guarded = ticket.guarded;
  absl::Status status;
  bool foreign = false;
  if (ticket != expected || (ticket.left_to_trainer != 0 && finisher_ == nullptr)) {
    status = absl::InternalError("the answer is to another ticket than the one issued");
  } else if (options_.expected != nullptr && id != kLocalProducer &&
             frame->kind == Frame::Kind::kBatch && frame->batch->producer.empty()) {
    status = options_.expected->CheckBatch(*frame->batch);
    foreign = !status.ok();
  }
  if (!status.ok()) {
    frame->kind = Frame::Kind::kFailed;
    frame->error = std::move(status);
  }
  return foreign;
}

// Orders of samples that differ agree in most places: a batch of it that looks right proves
// nothing, least of all that the files behind its numbers are this job's.
void TicketClientImpl::Distrust(ProducerId id, bool foreign, Frame* frame) {
  const auto worker = met_.find(id);
  if (worker == met_.end()) return;
  if (foreign) options_.distrusted->Add(worker->second, frame->error);
  if (frame->kind != Frame::Kind::kBatch) return;
  absl::Status why = options_.distrusted->Find(worker->second);
  if (why.ok()) return;
  frame->kind = Frame::Kind::kFailed;
  frame->error = std::move(why);
}

void TicketClientImpl::OnFrame(ProducerId id, Frame frame) {
  const Ticket& ticket = frame.ticket;
  if (ticket.generation != options_.generation) return;
  if (ticket.id < 0 || ticket.id >= plan_.size()) return;
  const bool foreign = CheckAnswer(id, &frame);  // without the lock: it looks at every sample
  const base::MutexLock lock(mutex_);
  if (closing_) return;
  Distrust(id, foreign, &frame);
  if (id == kLocalProducer && frame.kind != Frame::Kind::kStarted) local_tickets_.erase(ticket.id);
  const WorkerAddress* worker = links_.Find(id);
  const std::string name = worker == nullptr ? "local" : worker->name;
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
  const bool fatal = !frame.batch->fatal.empty();
  LearnFatal(*frame.batch);
  if (id != kLocalProducer && frame.batch->producer.empty()) {
    placement_.OnBatch(*frame.batch);
    ChoosePlacement();
  }
  if (ticket.left_to_trainer != 0) return FinishBatch({id, std::move(frame.batch)});
  frame.batch->producer = name;
  const double work_seconds = frame.batch->work_seconds;
  if (Apply(Window::Arrived{.producer = id,
                            .ticket = ticket.id,
                            .bytes = frame.batch->tensor_bytes(),
                            .work = base::FromSeconds(work_seconds),
                            .fatal = fatal})) {
    stats_.bytes_waiting += frame.batch->tensor_bytes();
    if (!frame.transport.empty()) ++by_transport_[frame.transport];
    journal_.OnArrived(id, ticket.id, work_seconds, clock_.Now());
    lives_.OnArrived(id, clock_.Now(), frame.batch.get());
    batches_[ticket.id] = std::move(frame.batch);
  }
}

}  // namespace hetero::feed
