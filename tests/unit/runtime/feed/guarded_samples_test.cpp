#include "runtime/feed/guarded_samples.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/non_dumpable.h"
#include "harmful_dataset.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/job/permutation.h"

// A sanitizer's own allocator ends the process where there is no memory, whatever was asked of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HETERO_OTHER_ALLOCATOR
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HETERO_OTHER_ALLOCATOR
#endif
#endif

namespace hetero::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSamples = 20;
constexpr uint64_t kSeed = 7;
const Ticket kTicket{.id = 1, .epoch = 3, .slots = {5, 8}};

api::HeteroTrainingJob Job() {
  api::HeteroTrainingJob job;
  job.spec.training.seed = kSeed;
  return job;
}

std::unique_ptr<SampleProducer> Producer(int64_t harmful, Harm harm, SharedCount* done = nullptr,
                                         int times = 0) {
  return *SampleProducer::Create(
      Job(), std::make_unique<HarmfulDataset>(kSamples, harmful, harm, done, times), nullptr);
}

int64_t IdAt(int64_t slot) {
  return job::Permutation(kSeed, kTicket.epoch, kSamples, Job().spec.dataset.shuffle).At(slot);
}

absl::StatusOr<GuardedSamples> Guard(const BatchProducer& producer, Batch* batch,
                                     const GuardLimits& limits = {}) {
  return ProduceGuarded(producer, batch, 0, batch->count(), limits, base::Clock::Real(), {});
}

// The batch where the sample cannot be decoded, made without any guard.
void ExpectAsIfUndecodable(int64_t harmful, const Batch& batch,
                           const std::vector<BadSample>& bad_samples) {
  const auto producer = Producer(harmful, Harm::kBadBytes);
  Batch expected = producer->Allocate(kTicket, NewSlab);
  std::vector<BadSample> expected_bad;
  for (int64_t i = 0; i < expected.count(); ++i) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(producer->Produce(&expected, i, &bad).ok());
    if (bad) expected_bad.push_back(*bad);
  }
  EXPECT_EQ(batch.sample_ids, expected.sample_ids);
  EXPECT_EQ(batch.labels, expected.labels);
  EXPECT_EQ(batch.crcs, expected.crcs);
  ASSERT_EQ(batch.images.size(), expected.images.size());
  EXPECT_EQ(std::memcmp(batch.images.data(), expected.images.data(),
                        static_cast<size_t>(batch.images.size())),
            0);
  ASSERT_THAT(bad_samples, SizeIs(expected_bad.size()));
  for (size_t i = 0; i < bad_samples.size(); ++i) {
    EXPECT_EQ(bad_samples[i].slot, expected_bad[i].slot);
    EXPECT_EQ(bad_samples[i].sample_id, expected_bad[i].sample_id);
    EXPECT_EQ(bad_samples[i].replacement_id, expected_bad[i].replacement_id);
  }
}

TEST(GuardedSamples, ASampleThatEndsItsProcessIsFoundNamedAndReplacedLikeAnUndecodableOne) {
  const int64_t harmful = IdAt(8);
  const std::pair<Harm, const char*> cases[] = {{Harm::kAbort, "signal 6"},
                                                {Harm::kExit, "exit code 0"}};
  for (const auto& [harm, how] : cases) {
    const auto producer = Producer(harmful, harm);
    Batch batch = producer->Allocate(kTicket, NewSlab);
    const auto made = Guard(*producer, &batch);
    ASSERT_TRUE(made.ok()) << made.status();
    ExpectAsIfUndecodable(harmful, batch, made->bad_samples);
    ASSERT_THAT(made->fatal, SizeIs(1));
    EXPECT_EQ(made->fatal[0].id, harmful);
    EXPECT_THAT(made->fatal[0].reason, HasSubstr(std::to_string(harmful) + ".jpg"));
    EXPECT_THAT(made->fatal[0].reason, HasSubstr(how));
    EXPECT_EQ(made->bad_samples[0].reason, made->fatal[0].reason);
    EXPECT_THAT(producer->avoided(), ElementsAre(made->fatal[0]));
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
  EXPECT_EQ(errno, ECHILD);
}

#ifndef HETERO_OTHER_ALLOCATOR

TEST(GuardedSamples, ASampleThatTakesAllMemoryIsFound) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  for (const Harm harm : {Harm::kHunger, Harm::kHungerAndAbort}) {
    const int64_t harmful = IdAt(6);
    const auto producer = Producer(harmful, harm);
    Batch batch = producer->Allocate(kTicket, NewSlab);
    const auto made = Guard(*producer, &batch, {.fault_bytes = kBytes, .memory_bytes = kBytes});
    ASSERT_TRUE(made.ok()) << made.status();
    ExpectAsIfUndecodable(harmful, batch, made->bad_samples);
    ASSERT_THAT(made->fatal, SizeIs(1));
    EXPECT_EQ(made->fatal[0].id, harmful);
  }
}

// Which samples are bad would be a question of who reads them.
TEST(GuardedSamples, AMachineThatLacksMemoryCondemnsNoSample) {
  const std::pair<Harm, int64_t> cases[] = {{Harm::kHunger, int64_t{32} << 20},
                                            {Harm::kHungerAndAbort, int64_t{256} << 20},
                                            {Harm::kKill, GuardLimits::kFaultBytes}};
  for (const auto& [harm, memory_bytes] : cases) {
    const auto producer = Producer(IdAt(6), harm);
    Batch batch = producer->Allocate(kTicket, NewSlab);
    const absl::Status status = Guard(*producer, &batch, {.memory_bytes = memory_bytes}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(IdAt(6)) + ".jpg: "));
    EXPECT_THAT(producer->avoided(), IsEmpty());
  }
}

#endif

TEST(GuardedSamples, AChildThatWasKilledFromOutsideCondemnsNoSample) {
  SharedCount done;
  const auto producer = Producer(IdAt(8), Harm::kKill, &done, /*times=*/1);
  Batch batch = producer->Allocate(kTicket, NewSlab);
  const auto made = Guard(*producer, &batch);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->fatal, IsEmpty());
  EXPECT_THAT(made->bad_samples, IsEmpty());
  for (int64_t i = 0; i < batch.count(); ++i) EXPECT_EQ(batch.sample_ids[i], IdAt(5 + i));
  EXPECT_EQ((*done).load(), 2);
}

// Raw pictures. Of the process that reads them it counts whether it is ended first where there is
// no memory, and whether it can be dumped.
class WatchingDataset : public HarmfulDataset {
 public:
  WatchingDataset(SharedCount* first, SharedCount* dumpable)
      : HarmfulDataset(kSamples, /*harmful=*/-1, Harm::kBadBytes),
        first_(first),
        dumpable_(dumpable) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    char score[8] = {};
    const int file = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    if (read(file, score, sizeof score - 1) > 0 && std::string(score) == "1000\n") ++**first_;
    close(file);
    if (prctl(PR_GET_DUMPABLE) != 0) ++**dumpable_;
    return HarmfulDataset::Read(id, sample);
  }

 private:
  SharedCount* const first_;
  SharedCount* const dumpable_;
};

// Then the file that says so is root's alone.
TEST(GuardedSamples, AChildIsEndedFirstAlsoWhereItsProcessIsNonDumpable) {
  SharedCount first, dumpable;
  const pid_t process = fork();
  if (process == 0) {
    // Root may open it all the same. A namespace without other users has nobody else.
    if (geteuid() == 0 && setuid(65534) != 0 && errno != EINVAL) _exit(1);
    base::MakeNonDumpable();
    const auto producer = *SampleProducer::Create(
        Job(), std::make_unique<WatchingDataset>(&first, &dumpable), nullptr);
    Batch batch = producer->Allocate(kTicket, NewSlab);
    _exit(Guard(*producer, &batch).ok() ? 0 : 2);
  }
  int status = -1;
  waitpid(process, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ((*first).load(), kTicket.slots.count);
  EXPECT_EQ((*dumpable).load(), 0);
}

TEST(GuardedSamples, AnAvoidedSampleIsNotTouchedAgain) {
  const auto producer = Producer(IdAt(8), Harm::kAbort);
  producer->Avoid({job::Split::kTrain, IdAt(8), "8.jpg: known"});
  Batch batch = producer->Allocate(kTicket, NewSlab);
  std::vector<BadSample> bad_samples;
  for (int64_t i = 0; i < batch.count(); ++i) {
    std::optional<BadSample> bad;
    ASSERT_TRUE(producer->Produce(&batch, i, &bad).ok());  // in this process
    if (bad) bad_samples.push_back(*bad);
  }
  ExpectAsIfUndecodable(IdAt(8), batch, bad_samples);
  EXPECT_EQ(bad_samples[0].reason, "8.jpg: known");
}

TEST(GuardedSamples, ASampleThatHangsIsAnErrorThatNamesItAndNeverReplaced) {
  const auto producer = Producer(IdAt(8), Harm::kHang);
  Batch batch = producer->Allocate(kTicket, NewSlab);
  const absl::Status status =
      Guard(*producer, &batch, {.patience = std::chrono::milliseconds(200)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(IdAt(8)) + ".jpg: took"));
  EXPECT_THAT(producer->avoided(), IsEmpty());
}

TEST(GuardedSamples, AStopEndsTheChildToo) {
  const auto producer = Producer(IdAt(8), Harm::kHang);
  Batch batch = producer->Allocate(kTicket, NewSlab);
  std::stop_source stop;
  absl::Status status;
  std::jthread guard([&] {
    status = ProduceGuarded(*producer, &batch, 0, batch.count(), {}, base::Clock::Real(),
                            stop.get_token())
                 .status();
  });
  stop.request_stop();
  guard.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

// The batch of `ticket` from an executor of four threads.
absl::StatusOr<std::unique_ptr<Batch>> Serve(const BatchProducer& producer, const Ticket& ticket,
                                             bool low_priority = false) {
  std::optional<absl::StatusOr<std::unique_ptr<Batch>>> result;
  base::Mutex mutex;
  base::CondVar changed;
  TicketExecutor executor({.name = "cpu-0", .threads = 4, .low_priority = low_priority},
                          base::Clock::Real());
  executor.SetProducer(&producer);
  TicketExecutor::Callbacks callbacks;
  callbacks.on_started = [](const Ticket&) {};
  callbacks.on_done = [&](const Ticket&, absl::StatusOr<std::unique_ptr<Batch>> batch) {
    const base::MutexLock lock(mutex);
    result.emplace(std::move(batch));
    changed.NotifyAll();
  };
  executor.Submit(ticket, std::move(callbacks));
  const base::MutexLock lock(mutex);
  while (!result.has_value()) changed.Wait(mutex);
  return *std::move(result);
}

TEST(TicketExecutor, AGuardedTicketOutlivesAFatalSample) {
  const int64_t harmful = IdAt(10);
  const auto producer = Producer(harmful, Harm::kAbort);
  Ticket guarded = kTicket;
  guarded.guarded = true;
  const auto batch = Serve(*producer, guarded);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ExpectAsIfUndecodable(harmful, **batch, (*batch)->bad_samples);
  ASSERT_THAT((*batch)->fatal, SizeIs(1));
  EXPECT_EQ((*batch)->fatal[0].id, harmful);
}

// There is no memory for one of its samples.
class StarvedDataset : public HarmfulDataset {
 public:
  StarvedDataset() : HarmfulDataset(kSamples, -1, Harm::kBadBytes) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (id == IdAt(8)) throw std::bad_alloc();
    return HarmfulDataset::Read(id, sample);
  }
};

TEST(TicketExecutor, MemoryThatIsNotThereFailsTheTicketAndNamesTheSample) {
  const auto producer = *SampleProducer::Create(Job(), std::make_unique<StarvedDataset>(), nullptr);
  const absl::Status status = Serve(*producer, kTicket).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(IdAt(8)) + ".jpg"));
}

// What a library throws while it makes one of the samples.
class ThrowingDataset : public HarmfulDataset {
 public:
  explicit ThrowingDataset(std::function<void()> harm)
      : HarmfulDataset(kSamples, -1, Harm::kBadBytes), harm_(std::move(harm)) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    if (id == IdAt(8)) harm_();
    return HarmfulDataset::Read(id, sample);
  }

 private:
  const std::function<void()> harm_;
};

TEST(TicketExecutor, WhatIsThrownFailsTheTicketAndNamesTheSampleAndTheProcessLives) {
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[] { throw std::length_error("vector::_M_default_append"); }, "vector::_M_default_append"},
      {[] { throw std::runtime_error("the disk is on fire"); }, "the disk is on fire"},
      {[] { throw 7; }, "no std::exception"}};
  for (const auto& [harm, words] : cases) {
    for (const bool guarded : {false, true}) {
      const auto producer =
          *SampleProducer::Create(Job(), std::make_unique<ThrowingDataset>(harm), nullptr);
      Ticket ticket = kTicket;
      ticket.guarded = guarded;
      const absl::Status status = Serve(*producer, ticket).status();
      EXPECT_TRUE(absl::IsInternal(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(IdAt(8)) + ".jpg: "));
      EXPECT_THAT(std::string(status.message()), HasSubstr(words));
      EXPECT_THAT(producer->avoided(), IsEmpty());
    }
  }
}

// Its labels tell the priority of whoever reads it.
class PriorityDataset : public HarmfulDataset {
 public:
  PriorityDataset() : HarmfulDataset(kSamples, -1, Harm::kBadBytes) {}
  absl::Status Read(int64_t id, source::RawSample* sample) const override {
    const absl::Status status = HarmfulDataset::Read(id, sample);
    sample->label = sched_getscheduler(0) == SCHED_IDLE ? 1 : 0;
    return status;
  }
};

// A thread of idle priority held the lock that fork() takes while others kept it from the cores,
// and no other thread of the process went on.
TEST(TicketExecutor, NoThreadOfLowPriorityForks) {
  const auto producer =
      *SampleProducer::Create(Job(), std::make_unique<PriorityDataset>(), nullptr);
  Ticket guarded = kTicket;
  guarded.guarded = true;
  for (const auto& [ticket, label] : {std::pair(kTicket, 1), std::pair(guarded, 0)}) {
    const auto batch = Serve(*producer, ticket, /*low_priority=*/true);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT((*batch)->labels, ::testing::Each(label));
  }
}

// As BatchFinisher's: whatever a producer throws.
class ThrowingProducer : public BatchProducer {
 public:
  explicit ThrowingProducer(bool at_once) : at_once_(at_once) {}
  absl::Status Check(const Ticket&) const override { return absl::OkStatus(); }
  Batch Allocate(const Ticket& ticket, const SlabSource&) const override {
    if (at_once_) throw std::length_error("too long");
    Batch batch;
    batch.ticket = ticket;
    const auto count = static_cast<size_t>(ticket.slots.count);
    batch.labels.resize(count);
    batch.sample_ids.assign(count, 12);
    batch.crcs.resize(count);
    return batch;
  }
  absl::Status Produce(Batch*, int64_t, std::optional<BadSample>*) const override {
    throw std::runtime_error("the disk is on fire");
  }
  int64_t sample_bytes() const override { return 0; }

 private:
  const bool at_once_;
};

TEST(TicketExecutor, WhatAnyProducerThrowsFailsTheTicketByName) {
  const absl::Status allocating = Serve(ThrowingProducer(true), kTicket).status();
  EXPECT_TRUE(absl::IsInternal(allocating)) << allocating;
  EXPECT_THAT(std::string(allocating.message()), HasSubstr("ticket 1: "));
  EXPECT_THAT(std::string(allocating.message()), HasSubstr("too long"));
  const absl::Status producing = Serve(ThrowingProducer(false), kTicket).status();
  EXPECT_TRUE(absl::IsInternal(producing)) << producing;
  EXPECT_THAT(std::string(producing.message()), HasSubstr("ticket 1, sample 12: "));
  EXPECT_THAT(std::string(producing.message()), HasSubstr("on fire"));
}

}  // namespace
}  // namespace hetero::feed
