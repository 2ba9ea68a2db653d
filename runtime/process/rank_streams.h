#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "runtime/process/rank_session.h"

// The streams of a rank: a part of RankSession that nobody else includes.
namespace hetero::process {

job::Schedule::Options ScheduleOf(const api::HeteroTrainingJob& job,
                                  const feed::SampleProducer& producer);
// Counters of two streams, one after the other.
feed::StreamStats Sum(const feed::StreamStats& earlier, const feed::StreamStats& later);

// A ticket client that knows where in the schedule it stands. Its counters go on from those of the
// client before it.
class RankSession::PositionedStream : public feed::BatchStream {
 public:
  // `faults`: of the client before it, that were not told yet.
  PositionedStream(std::unique_ptr<feed::TicketClient> client, int64_t next,
                   const feed::StreamStats& earlier, std::vector<feed::WorkerFault> faults)
      : client_(std::move(client)), next_(next), earlier_(earlier), faults_(std::move(faults)) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    absl::StatusOr<std::unique_ptr<feed::Batch>> batch = client_->Next(std::move(stop));
    if (batch.ok()) ++next_;
    return batch;
  }
  feed::StreamStats stats() const override { return Sum(earlier_, client_->stats()); }
  feed::PlacementState placement() const { return client_->placement(); }
  std::vector<feed::WorkerFault> TakeFaults() {
    std::vector<feed::WorkerFault> faults = std::exchange(faults_, {});
    for (feed::WorkerFault& fault : client_->TakeFaults()) faults.push_back(std::move(fault));
    return faults;
  }
  void SetRoster(const std::vector<feed::WorkerAddress>& roster) { client_->SetRoster(roster); }
  int64_t next() const { return next_; }

 private:
  const std::unique_ptr<feed::TicketClient> client_;
  int64_t next_;  // of the thread that calls Next()
  const feed::StreamStats earlier_;
  std::vector<feed::WorkerFault> faults_;
};

// A validation pass: the evaluation after the only step of a schedule of its own.
class RankSession::ValidationStream : public feed::BatchStream {
 public:
  ValidationStream(RankSession& session, const job::Schedule::Options& options)
      : session_(session), schedule_(options, session.rank_) {
    feed::TicketClient::Options stream = session.stream_options_;
    stream.first_batch = schedule_.IndexOfStep(0) + 1;
    stream.suspect_batch.reset();
    client_ = feed::TicketClient::Start(std::move(stream), &schedule_, session.producer_.get(),
                                        session.clock_);
    const base::MutexLock lock(session_.mutex_);
    session_.validation_ = client_.get();
    client_->SetRoster(session_.roster_);
  }
  ~ValidationStream() override {
    const base::MutexLock lock(session_.mutex_);
    session_.validation_ = nullptr;
  }

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    return client_->Next(std::move(stop));
  }
  feed::StreamStats stats() const override { return client_->stats(); }
  int64_t batches() const { return schedule_.evaluation_batches(); }

 private:
  RankSession& session_;
  const job::Schedule schedule_;
  std::unique_ptr<feed::TicketClient> client_;
};

}  // namespace hetero::process
