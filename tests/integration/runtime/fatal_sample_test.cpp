// A sample that ends every process which reads it: real workers die of it, and the job goes on as
// if it could not be decoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"
#include "runtime/job/permutation.h"
#include "runtime/job/schedule.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/feed/harmful_dataset.h"

namespace hetero::feed {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 2;
constexpr int64_t kSamples = 96;
constexpr uint64_t kSeed = 7;
constexpr int32_t kEpochs = 3;
constexpr int64_t kBatch = 16;
constexpr int64_t kWindow = 2;  // tickets; the own cores take them before a worker is there

// Of the first epoch's third ticket.
int64_t Harmful() {
  return job::Permutation(kSeed, 0, kSamples, api::Shuffle()).At(kWindow * kBatch + 5);
}

std::unique_ptr<SampleProducer> Producer(std::unique_ptr<source::Dataset> dataset) {
  api::HeteroTrainingJob job;
  job.spec.training.seed = kSeed;
  return *SampleProducer::Create(job, std::move(dataset), nullptr);
}

// What a worker reads. It is decoded for a while before it does its harm.
class WorkersDataset : public HarmfulDataset {
 public:
  WorkersDataset(Harm harm, base::Duration before)
      : HarmfulDataset(kSamples, Harmful(), harm), before_(before) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (id == Harmful()) base::Clock::Real().SleepFor(before_);
    return HarmfulDataset::Read(id, sample);
  }

 private:
  const base::Duration before_;
};

// What the trainer reads itself. It waits until a worker has served: before one is there the own
// cores serve alone, and unguarded (docs/decisions/0041).
class OwnDataset : public HarmfulDataset {
 public:
  OwnDataset(Harm harm, const std::latch& served)
      : HarmfulDataset(kSamples, Harmful(), harm), served_(served) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    served_.wait();
    return HarmfulDataset::Read(id, sample);
  }

 private:
  const std::latch& served_;
};

// Worker processes, each started again when it ends, by a process that has not used gRPC. Tells
// their addresses.
class RestartedWorkers {
 public:
  explicit RestartedWorkers(Harm harm, base::Duration before = std::chrono::milliseconds(50))
      : harm_(harm), before_(before) {
    int told[2];
    if (pipe(told) != 0) std::abort();
    spawner_ = fork();
    if (spawner_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::map<pid_t, int> running;
      for (int index = 0; index < kWorkers; ++index) running[Spawn(index, told[1])] = index;
      while (true) {
        const pid_t ended = wait(nullptr);
        const auto node = running.extract(ended);
        if (node) running[Spawn(node.mapped(), told[1])] = node.mapped();
      }
    }
    told_ = fdopen(told[0], "r");
    end_ = told[1];
  }
  ~RestartedWorkers() {
    kill(spawner_, SIGKILL);
    waitpid(spawner_, nullptr, 0);
    std::fclose(told_);
    close(end_);
  }
  RestartedWorkers(const RestartedWorkers&) = delete;
  RestartedWorkers& operator=(const RestartedWorkers&) = delete;

  // Next() tells of nobody any more.
  void StopFollowing() const { dprintf(end_, "- end\n"); }
  // The next that is ready; absent when there will be none.
  std::optional<WorkerAddress> Next() {
    std::array<char, 256> line;
    if (std::fgets(line.data(), line.size(), told_) == nullptr) return std::nullopt;
    std::string text = line.data();
    text.pop_back();
    if (text == "- end") return std::nullopt;
    return WorkerAddress{"cpu-" + text.substr(0, 1), text.substr(2), ++incarnations_};
  }

 private:
  pid_t Spawn(int index, int told) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto producer = Producer(std::make_unique<WorkersDataset>(harm_, before_));
    auto server = WorkerServer::Start(
        {.listen_address =
             "unix:" + (folder_ / (std::to_string(index) + "-" + std::to_string(getpid()))),
         .tls = {.plain_text = true},
         .name = "cpu",
         .threads = 2},
        base::Clock::Real());
    if (!server.ok()) _exit(1);
    (*server)->SetProducer(producer.get());
    dprintf(told, "%d %s\n", index, (*server)->address().c_str());
    while (true) pause();
  }

  const Harm harm_;
  const base::Duration before_;
  const hetero::testing::TemporaryFolder folder_;
  pid_t spawner_ = -1;
  std::FILE* told_ = nullptr;
  int end_ = -1;
  int64_t incarnations_ = 0;
};

struct Outcome {
  std::string digest;
  std::vector<BadSample> bad_samples;
  int workers = 0;  // that were there
};

Outcome TakeStream(RestartedWorkers& workers, Harm harm) {
  std::latch served(1);
  const auto local = Producer(std::make_unique<OwnDataset>(harm, served));
  const job::Schedule schedule(
      {.training = {.samples = kSamples, .batch_size_per_worker = kBatch, .epochs = kEpochs}}, 0);
  const auto client = TicketClient::Start(
      {.byte_budget = kWindow * kBatch * 4, .local_threads = 1, .tls = {.plain_text = true}},
      &schedule, local.get(), base::Clock::Real());
  std::map<std::string, WorkerAddress> roster;
  const auto meet = [&](const WorkerAddress& worker) {
    roster[worker.name] = worker;
    std::vector<WorkerAddress> all;
    for (const auto& [name, address] : roster) all.push_back(address);
    client->SetRoster(all);
  };
  Outcome outcome;
  for (; outcome.workers < kWorkers; ++outcome.workers) {
    const std::optional<WorkerAddress> worker = workers.Next();
    if (worker) meet(*worker);
  }
  std::atomic<int> later = 0;
  std::jthread following([&] {
    while (const std::optional<WorkerAddress> worker = workers.Next()) {
      meet(*worker);
      ++later;
    }
  });
  job::StreamDigest digest;
  for (int64_t id = 0; id < schedule.size(); ++id) {
    const auto batch = client->Next({});
    if (id == 0) served.count_down();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok()) break;
    AddToDigest(kSeed, **batch, &digest);
    for (const BadSample& bad : (*batch)->bad_samples) outcome.bad_samples.push_back(bad);
  }
  workers.StopFollowing();
  following.join();
  outcome.workers += later;
  outcome.digest = digest.ToHex();
  return outcome;
}

TEST(FatalSample, WorkersDieOfItAndTheStreamIsThatOfAnUndecodableOne) {
  // All before this process uses gRPC. The slow one is late before it ends its worker.
  RestartedWorkers undecodable(Harm::kBadBytes);
  RestartedWorkers deadly(Harm::kAbort);
  RestartedWorkers slowly_deadly(Harm::kAbort, std::chrono::seconds(3));
  const Outcome expected = TakeStream(undecodable, Harm::kBadBytes);
  EXPECT_EQ(expected.workers, kWorkers);
  for (RestartedWorkers* workers : {&deadly, &slowly_deadly}) {
    const Outcome outcome = TakeStream(*workers, Harm::kAbort);  // this process too, unguarded
    EXPECT_EQ(outcome.digest, expected.digest);
    EXPECT_LE(outcome.workers, kWorkers + 2);
    ASSERT_EQ(outcome.bad_samples.size(), expected.bad_samples.size());
    for (const BadSample& bad : outcome.bad_samples) {
      EXPECT_EQ(bad.sample_id, Harmful());
      EXPECT_THAT(bad.reason, HasSubstr(std::to_string(Harmful()) +
                                        ".jpg: ends the process that reads it (signal 6"));
    }
  }
}

}  // namespace
}  // namespace hetero::feed
