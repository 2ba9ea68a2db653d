#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/backoff.h"
#include "runtime/feed/batch_finisher.h"
#include "runtime/feed/local_share.h"
#include "runtime/feed/placement_probe.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_plan.h"
#include "runtime/feed/trainer_stream.h"
#include "runtime/feed/wait_causes.h"
#include "runtime/feed/window.h"
#include "runtime/feed/wire.h"

namespace hetero::feed {

// What TicketClient is made of. In three files: what the training thread calls and the life of it
// all (ticket_client.cpp), the window's events and actions (ticket_client_events.cpp), the CPU
// workers and their streams (ticket_client_workers.cpp).
class TicketClientImpl : public TicketClient {
 public:
  TicketClientImpl(Options options, const job::Schedule* schedule, const BatchProducer* producer,
                   base::Clock& clock);
  ~TicketClientImpl() override;

  absl::StatusOr<std::unique_ptr<Batch>> Next(std::stop_token stop) override;
  StreamStats stats() const override;
  void SetRoster(const std::vector<WorkerAddress>& workers) override;
  PlacementState placement() const override;

 private:
  struct Worker {
    WorkerAddress address;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<TrainerStream> stream;  // null while no dial is under way
    base::Backoff backoff{
        {.initial = std::chrono::milliseconds(50), .max = std::chrono::milliseconds(1000)}};
    base::Instant redial_at;
    int data_unanswered = 0;  // data connections in a row that the worker did not take up
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
  // Lets a worker of another host send them past gRPC.
  void OpenData(Worker* worker);
  absl::StatusOr<std::unique_ptr<Batch>> TakeHead();

  void OnUp(ProducerId id);
  void OnFrame(ProducerId id, Frame frame);
  void OnData(ProducerId id);
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

}  // namespace hetero::feed
