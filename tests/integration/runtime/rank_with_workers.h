#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/grpc_lifetime.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_plan.h"
#include "runtime/feed/transport/transport.h"
#include "runtime/feed/transport/transports.h"
#include "runtime/head/server.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// A head and two cpu-worker processes on unix sockets, and one rank in this process.
class RankWithWorkersTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kDeadline{60};  // of one batch
  static constexpr size_t kWorkers = 2;
  static constexpr int64_t kSamples = 9600;  // of the whole stream

  void SetUp() override {
    base::KeepGrpcInitialized();
    // 600 batches of 16 pictures of 6 KB; a millisecond each, so that there is time for faults.
    job_ = SmallJob({"dataset.samples=1600", "training.epochs=6", "training.batchSizePerWorker=16",
                     "roles.gpu.replicas=1", "roles.cpu.replicas=2",
                     "dataset.image={height: 48, width: 48, channels: 3}",
                     "pipeline=[{op: Delay, milliseconds: 1}, {op: HorizontalFlip}, "
                     "{op: GaussianBlur, kernelSize: 3}, {op: Normalize}]"});
    head::Server::Options options;
    options.job = job_;
    options.listen_address = "unix:" + (folder_ / "head.sock");
    options.tls.plain_text = true;
    options.created = base::Clock::Real().WallNow();
    auto head = head::Server::Start(std::move(options), base::Clock::Real());
    ASSERT_TRUE(head.ok()) << head.status();
    head_ = *std::move(head);
    auto producer = feed::SampleProducer::Create(job_);
    ASSERT_TRUE(producer.ok()) << producer.status();
    producer_ = *std::move(producer);
    schedule_ = std::make_unique<job::Schedule>(
        job::Schedule::Options{
            .training = {.samples = 1600, .batch_size_per_worker = 16, .epochs = 6}},
        0);
    for (size_t i = 0; i < kWorkers; ++i) StartWorker(i);
  }

  std::string SocketPath(size_t worker) const {
    return folder_ / ("cpu-" + std::to_string(worker));
  }
  // Of this process alone, so that a worker that is started again finds its port free.
  static std::string PortOfOwn(size_t worker) {
    const pid_t pid = getpid();
    return "127." + std::to_string(64 + (pid >> 16) % 128) + "." +
           std::to_string((pid >> 8) % 256) + "." + std::to_string(pid % 256) + ":" +
           std::to_string(7080 + worker);
  }
  // Where the worker listens, and where the rank finds it.
  virtual std::string ListenAddress(size_t worker) const { return "unix:" + SocketPath(worker); }
  virtual std::string AddressOf(size_t worker) const { return ListenAddress(worker); }

  void StartWorker(size_t index) {
    workers_.resize(kWorkers);
    workers_[index].reset();  // frees the address
    const std::string name = std::to_string(index);
    workers_[index] = std::make_unique<ProgramRun>(
        "hetero-runtime", std::vector<std::string>{"cpu-worker", "--listen", ListenAddress(index)},
        std::vector<std::string>{
            "HETERO_ROLE=cpu", "HETERO_ROLE_TYPE=CPUWorker", "HETERO_INDEX=" + name,
            "HETERO_JOB_NAME=small", "HETERO_INCARNATION=" + std::to_string(++incarnation_),
            "HETERO_HEAD_ADDRESS=" + head_->address(), "HETERO_TLS=plain-text"});
  }

  // The workers are the only ones who can serve.
  void StartClient() {
    client_ = feed::TicketClient::Start({.byte_budget = 24 * 16 * producer_->sample_bytes(),
                                         .local_threads = 0,
                                         .tls = {.plain_text = true},
                                         .transports = transports_},
                                        schedule_.get(), producer_.get(), base::Clock::Real());
    std::vector<feed::WorkerAddress> roster;
    for (size_t i = 0; i < kWorkers; ++i) {
      roster.push_back({"cpu-" + std::to_string(i), AddressOf(i), 1});
    }
    client_->SetRoster(roster);
  }

  // Takes `count` batches, or all that are left.
  void Take(int64_t count = 1 << 30) {
    for (; count > 0; --count) {
      std::stop_source stop;
      const std::jthread watchdog([&stop](std::stop_token done) {
        if (base::Clock::Real().SleepFor(kDeadline, done)) stop.request_stop();
      });
      absl::StatusOr<std::unique_ptr<feed::Batch>> batch = client_->Next(stop.get_token());
      if (absl::IsOutOfRange(batch.status())) return;
      ASSERT_TRUE(batch.ok()) << batch.status();
      ASSERT_EQ((*batch)->ticket.id, next_++);
      if ((*batch)->producer == "cpu-0") ++from_first_;
      feed::AddToDigest(7, **batch, &digest_);
      if (held_.size() < hold_) held_.push_back(*std::move(batch));
    }
  }
  // Takes batches until worker 0 serves again; says how long that took.
  void TakeUntilTheFirstWorkerServes(const std::string& after) {
    const auto begin = std::chrono::steady_clock::now();
    const int64_t before = from_first_;
    while (from_first_ == before && next_ < schedule_->size()) {
      ASSERT_NO_FATAL_FAILURE(Take(1));
      // Leaves batches for the one who comes back.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_GT(from_first_, before) << "worker 0 never served again";
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    std::cout << after << ": worker 0 serves again after " << time.count() << " s\n";
  }
  int64_t CameBy(std::string_view transport) const {
    const auto batches = client_->batches_by_transport();
    const auto it = batches.find(transport);
    return it == batches.end() ? 0 : it->second;
  }
  // Every sample that is held still has the bytes that its checksum was computed of.
  void ExpectHeldBatchesIntact() const {
    for (const auto& batch : held_) {
      const int64_t bytes = batch->images.size() / batch->count();
      for (int64_t i = 0; i < batch->count(); ++i) {
        ASSERT_EQ(base::Crc32c(batch->images.data() + i * bytes, static_cast<size_t>(bytes)),
                  batch->crcs[static_cast<size_t>(i)])
            << "step " << batch->ticket.step << ", sample " << i;
      }
    }
  }
  void ExpectTheUndisturbedStream() {
    ASSERT_NO_FATAL_FAILURE(Take());
    EXPECT_EQ(next_, schedule_->size());
    const feed::StreamStats stats = client_->stats();
    EXPECT_EQ(stats.samples, kSamples);
    std::cout << stats.tickets_reissued << " tickets issued again, " << stats.duplicates_dropped
              << " duplicates, " << stats.batches_damaged << " damaged\n";
    for (const auto& [transport, batches] : client_->batches_by_transport()) {
      std::cout << batches << " batches by " << transport << "\n";
    }
    EXPECT_EQ(digest_.ToHex(), UndisturbedDigest());
  }
  // Of the same batches, produced in this process without any tickets' way.
  std::string UndisturbedDigest() const {
    const feed::TicketPlan plan(schedule_.get(), 1, 0, 0);
    std::mutex mutex;
    job::StreamDigest digest;
    std::latch left(static_cast<std::ptrdiff_t>(plan.size()));
    feed::TicketExecutor executor({.name = "undisturbed", .threads = 8}, base::Clock::Real());
    executor.SetProducer(producer_.get());
    for (int64_t id = 0; id < plan.size(); ++id) {
      feed::TicketExecutor::Callbacks callbacks;
      callbacks.on_started = [](const feed::Ticket&) {};
      callbacks.on_done = [&](const feed::Ticket&,
                              absl::StatusOr<std::unique_ptr<feed::Batch>> batch) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(batch.ok()) << batch.status();
        if (batch.ok()) feed::AddToDigest(7, **batch, &digest);
        left.count_down();
      };
      executor.Submit(plan.At(id), std::move(callbacks));
    }
    left.wait();
    return digest.ToHex();
  }

  TemporaryFolder folder_;
  api::HeteroTrainingJob job_;
  std::unique_ptr<head::Server> head_;
  int64_t incarnation_ = 0;
  std::vector<std::unique_ptr<ProgramRun>> workers_;
  std::unique_ptr<feed::SampleProducer> producer_;
  std::unique_ptr<job::Schedule> schedule_;
  std::unique_ptr<feed::TicketClient> client_;
  job::StreamDigest digest_;
  int64_t next_ = 0;
  int64_t from_first_ = 0;  // batches that worker 0 produced
  feed::Transports transports_ = feed::EveryTransport();
  size_t hold_ = 0;  // how many batches are kept
  std::vector<std::unique_ptr<feed::Batch>> held_;
};

}  // namespace hetero::testing
