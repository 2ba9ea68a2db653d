// A trainer's memory is bounded by its budget, however many workers are however fast.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"
#include "runtime/job/schedule.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/transports.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kWorkers = 100;
constexpr int64_t kMiB = 1 << 20;

// Batches of one megabyte, as fast as memory can be written.
class FastProducer : public BatchProducer {
 public:
  absl::Status Check(const Ticket&) const override { return absl::OkStatus(); }
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override {
    Batch batch;
    batch.ticket = ticket;
    batch.shape = {512, 512, 4};
    batch.images = slabs(kMiB);
    std::memset(batch.images.data(), 9, kMiB);
    batch.labels.resize(1);
    batch.sample_ids.resize(1);
    batch.crcs = {base::Crc32c(batch.images.data(), kMiB)};
    return batch;
  }
  absl::Status Produce(Batch*, int64_t, std::optional<BadSample>*) const override {
    return absl::OkStatus();
  }
  int64_t sample_bytes() const override { return kMiB; }
};

// A hundred workers in a process of their own, so that this one's memory is the trainer's alone.
class Workers {
 public:
  explicit Workers(const Transport& transport) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) ServeForEver(transport, ready[1]);
    close(ready[1]);
    addresses_ = fdopen(ready[0], "r");
  }
  ~Workers() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    std::fclose(addresses_);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Once; fewer when they could not start.
  std::vector<WorkerAddress> Roster() {
    std::vector<WorkerAddress> roster;
    std::array<char, 256> line;
    while (roster.size() < kWorkers &&
           std::fgets(line.data(), line.size(), addresses_) != nullptr) {
      std::string address = line.data();
      address.pop_back();
      roster.push_back({"cpu-" + std::to_string(roster.size()), std::move(address), 1});
    }
    return roster;
  }

 private:
  [[noreturn]] void ServeForEver(const Transport& transport, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const FastProducer producer;
    std::vector<std::unique_ptr<WorkerServer>> servers;
    for (size_t i = 0; i < kWorkers; ++i) {
      auto server = WorkerServer::Start(
          {.listen_address = testing::ListenAddress(transport, folder_ / std::to_string(i)),
           .tls = {.plain_text = true},
           .name = "cpu"},
          base::Clock::Real());
      if (!server.ok()) _exit(1);
      (*server)->SetProducer(&producer);
      dprintf(ready, "%s\n", (*server)->address().c_str());
      servers.push_back(*std::move(server));
    }
    while (true) pause();
  }

  testing::TemporaryFolder folder_;
  pid_t child_ = -1;
  std::FILE* addresses_ = nullptr;
};

class FeedMemory : public ::testing::TestWithParam<const Transport*> {
 protected:
  // All at once: a process that has used gRPC must not fork.
  static void SetUpTestSuite() {
    for (const Transport* transport : EveryTransport()) {
      workers_[transport] = std::make_unique<Workers>(*transport);
    }
  }
  static void TearDownTestSuite() { workers_.clear(); }

  static inline std::map<const Transport*, std::unique_ptr<Workers>> workers_;
  const FastProducer producer_{};
};

int64_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

TEST_P(FeedMemory, HundredFastWorkersAndAPausedTrainerStayInTheBudget) {
  const std::vector<WorkerAddress> roster = workers_[GetParam()]->Roster();
  ASSERT_EQ(roster.size(), kWorkers);
  const job::Schedule schedule(
      {.training = {.samples = 400, .batch_size_per_worker = 1, .epochs = 1}}, 0);
  constexpr int64_t kBudget = 128 * kMiB;
  {
    const auto client = TicketClient::Start({.byte_budget = kBudget,
                                             .local_threads = 0,
                                             .tls = {.plain_text = true},
                                             .transports = testing::Only(GetParam())},
                                            &schedule, &producer_, base::Clock::Real());
    const int64_t before = ResidentBytes();
    client->SetRoster(roster);
    int64_t most_waiting = 0, most_resident = 0;
    const auto look = [&] {
      most_waiting = std::max(most_waiting, client->stats().bytes_waiting);
      most_resident = std::max(most_resident, ResidentBytes());
      std::this_thread::sleep_for(milliseconds(5));
    };
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (most_waiting < kBudget && std::chrono::steady_clock::now() < deadline) look();
    for (int i = 0; i < 200; ++i) look();  // whatever else might still come
    EXPECT_EQ(most_waiting, kBudget);
    std::cout << "resident memory grew by " << (most_resident - before) / kMiB << " MiB at "
              << most_waiting / kMiB << " MiB waiting\n";
    // Beside the window: a hundred connections, and the batches that are being taken in.
    if (!kSanitized) {
      EXPECT_LT(most_resident - before, kBudget + 96 * kMiB);
    }
    for (int i = 0; i < 400; ++i) {
      const auto batch = client->Next({});
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ((*batch)->ticket.id, i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FeedMemory, ::testing::ValuesIn(EveryTransport()),
                         testing::TransportName);

}  // namespace
}  // namespace hetero::feed
