#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "counting_producer.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/discard_loop.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"

namespace hetero::feed {

// Real workers and a real client in this process, 126 batches of 16 samples, and a folder.
class FeedFixture : public ::testing::Test {
 protected:
  // Of samples that are worth any transport.
  static constexpr int32_t kSide = 24;

  FeedFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "hetero-feed-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~FeedFixture() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<WorkerServer> StartWorker(const std::string& address, int index = 0,
                                            const Transports& transports = EveryTransport(),
                                            const base::TlsOptions& tls = {.plain_text = true}) {
    auto server = WorkerServer::Start({.listen_address = address,
                                       .tls = tls,
                                       .name = "cpu-" + std::to_string(index),
                                       .threads = 2,
                                       .transports = transports},
                                      base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return nullptr;
    (*server)->SetProducer(&producer_);
    return *std::move(server);
  }
  std::unique_ptr<TicketClient> StartClient(int local_threads,
                                            const Transports& transports = EveryTransport(),
                                            const base::TlsOptions& tls = {.plain_text = true}) {
    return TicketClient::Start({.byte_budget = 20 * 16 * producer_.sample_bytes(),
                                .local_threads = local_threads,
                                .tls = tls,
                                .transports = transports},
                               &schedule_, &producer_, base::Clock::Real());
  }
  static std::vector<WorkerAddress> Roster(
      const std::vector<std::unique_ptr<WorkerServer>>& servers) {
    std::vector<WorkerAddress> roster;
    for (const auto& server : servers) {
      roster.push_back({"cpu-" + std::to_string(roster.size()), server->address(), 1});
    }
    return roster;
  }
  // Takes the next `count` batches, and checks their order.
  void Take(TicketClient& client, int64_t count) {
    for (const int64_t end = next_ + count; next_ < end; ++next_) {
      const auto batch = client.Next(stop_.get_token());
      ASSERT_TRUE(batch.ok()) << batch.status();
      ASSERT_EQ((*batch)->ticket.id, next_);
      AddToDigest(5, **batch, &digest_);
    }
  }
  // Takes everything that is left: with what was taken before it is the whole stream.
  void ExpectTheWholeStream(TicketClient& client) {
    const absl::Status status = DiscardAll(
        client,
        [&](const Batch& batch) {
          EXPECT_EQ(batch.ticket.id, next_++);
          AddToDigest(5, batch, &digest_);
          return absl::OkStatus();
        },
        stop_.get_token());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(next_, schedule_.size());
    EXPECT_EQ(digest_.ToHex(), Expected().ToHex());
  }
  job::StreamDigest Expected() const {
    job::StreamDigest digest;
    for (int64_t id = 0; id < schedule_.size(); ++id) {
      const job::PlannedBatch planned = schedule_.At(id);
      for (int64_t i = 0; i < planned.slots.count; ++i) {
        const int64_t slot = planned.slots.first + i;
        const std::string bytes(static_cast<size_t>(producer_.sample_bytes()),
                                static_cast<char>(slot * 7 + planned.epoch));
        digest.Add(5, planned.epoch, planned.step, slot, slot + 1000 * planned.epoch,
                   base::Crc32c(bytes.data(), bytes.size()));
      }
    }
    return digest;
  }

  std::string folder_;
  std::stop_source stop_;
  CountingProducer producer_{kSide};
  const job::Schedule schedule_{
      {.training = {.samples = 1000, .batch_size_per_worker = 16, .epochs = 2}}, 0};
  int64_t next_ = 0;  // of the client's batches
  job::StreamDigest digest_;
};

}  // namespace hetero::feed
