#pragma once

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/feed/batch_finisher.h"
#include "runtime/feed/batch_lives.h"
#include "runtime/feed/local_share.h"
#include "runtime/feed/placement_probe.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_plan.h"
#include "runtime/feed/wait_causes.h"
#include "runtime/feed/window.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/feed/worker_links.h"

namespace hetero::feed {

// What TicketClient is made of. In two files: what the training thread calls and the life of it all
// (ticket_client.cpp), and the window's events and actions (ticket_client_events.cpp). Who is
// connected is WorkerLinks' part.
class TicketClientImpl : public TicketClient {
 public:
  TicketClientImpl(Options options, const job::Schedule* schedule, const BatchProducer* producer,
                   base::Clock& clock);
  ~TicketClientImpl() override;

  absl::StatusOr<std::unique_ptr<Batch>> Next(std::stop_token stop) override;
  StreamStats stats() const override;
  void SetRoster(const std::vector<WorkerAddress>& workers) override;
  PlacementState placement() const override;
  std::vector<WorkerFault> TakeFaults() override;
  std::map<std::string_view, int64_t> batches_by_transport() const override;

 private:
  bool Apply(const Window::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(const Window::Actions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void IssueLocally(const Ticket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The trainer's part of a worker's batch; it comes back through OnFrame.
  void FinishBatch(const BatchFinisher::Half& half) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SubmitHalf(const BatchFinisher::Half& half) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first half of `ticket` is done or has failed: the others are duplicates, or the next one is
  // tried.
  void OnHalfDone(int64_t ticket);
  // Of a ticket whose batch is there, and its worker has delivered, or that nobody was asked for.
  void DropHalf(const BatchFinisher::Half& half) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsThere(int64_t ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ticket < window_.head() || batches_.contains(ticket);
  }
  // Samples of `batch` that nobody may touch any more: remembered, and told to everybody.
  void LearnFatal(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteQuarantines(const Window::Actions& actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFault(WorkerFault fault) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ChoosePlacement() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the own cores serve beside the workers from now on.
  void JudgeLocalShare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::unique_ptr<Batch>> TakeHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnUp(ProducerId id);
  void OnFrame(ProducerId id, Frame frame);
  // An answer to another ticket than the one issued, or that cannot be right, is a failure. Whether
  // the batch is none of this job's.
  bool CheckAnswer(ProducerId id, Frame* frame) const;
  // Fails what else comes from a worker that has sent such a batch.
  void Distrust(ProducerId id, bool foreign, Frame* frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDown(ProducerId id, const TrainerStream::Ending& ending);
  void Drive(std::stop_token stop);

  const Options options_;
  const TicketPlan plan_;
  base::Clock& clock_;
  const BatchProducer* const producer_;  // may be null
  const absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials_;
  const base::Instant started_;

  // The streams', the executors' and the finisher's locks are taken inside it, never around.
  mutable base::Mutex mutex_;
  base::CondVar changed_;  // the head filled or failed, or a stream ended
  Window window_ ABSL_GUARDED_BY(mutex_);
  WaitJournal journal_ ABSL_GUARDED_BY(mutex_);
  BatchLives lives_ ABSL_GUARDED_BY(mutex_);
  PlacementProbe placement_ ABSL_GUARDED_BY(mutex_);
  LocalShareRule share_ ABSL_GUARDED_BY(mutex_);
  Window::Local local_mode_ ABSL_GUARDED_BY(mutex_) = Window::Local::kLastResort;
  // Arrived, not consumed.
  std::map<int64_t, std::unique_ptr<Batch>> batches_ ABSL_GUARDED_BY(mutex_);
  WorkerLinks links_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, TicketExecutor::Handle> local_tickets_ ABSL_GUARDED_BY(mutex_);
  std::vector<FatalSample> fatal_ ABSL_GUARDED_BY(mutex_);
  static constexpr size_t kMostFaults = 100;
  std::vector<WorkerFault> faults_ ABSL_GUARDED_BY(mutex_);  // not taken yet
  struct Quarantined {
    WorkerFault fault;
    base::Instant since;
  };
  std::map<ProducerId, Quarantined> quarantined_ ABSL_GUARDED_BY(mutex_);
  // All that were ever in the roster: a batch may come after its worker has left.
  std::map<ProducerId, WorkerAddress> met_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  StreamStats stats_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string_view, int64_t> by_transport_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<TicketExecutor> local_;    // null when this host serves no tickets
  std::unique_ptr<BatchFinisher> finisher_;  // null when workers do the whole pipeline
  std::unique_ptr<TicketExecutor> finishing_;
  std::jthread driver_;
};

}  // namespace hetero::feed
