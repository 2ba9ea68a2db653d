// What a thread at idle priority may hold while others keep it from the cores: no lock that a
// trainer waits for, so nothing but the samples is its.
#include "runtime/feed/idle_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <set>

#include "runtime/feed/ticket_executor.h"
#include "tests/unit/runtime/feed/counting_producer.h"

namespace hetero::feed {
namespace {

using ::testing::ElementsAre;

// Which policies a call was made at.
class Policies {
 public:
  void Note() const {
    const base::MutexLock lock(mutex_);
    seen_.insert(sched_getscheduler(0));
  }
  std::set<int> seen() const {
    const base::MutexLock lock(mutex_);
    return seen_;
  }

 private:
  mutable base::Mutex mutex_;
  mutable std::set<int> seen_ ABSL_GUARDED_BY(mutex_);
};

class WatchedProducer : public CountingProducer {
 public:
  absl::Status Check(const Ticket& ticket) const override {
    checks.Note();
    return CountingProducer::Check(ticket);
  }
  Batch Allocate(const Ticket& ticket, const SlabSource& slabs) const override {
    allocations.Note();
    return CountingProducer::Allocate(ticket, slabs);
  }
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override {
    samples.Note();
    return CountingProducer::Produce(batch, index, bad);
  }

  Policies checks;
  Policies allocations;
  Policies samples;
};

Ticket TicketOf(int64_t id, int64_t epoch = 0) {
  Ticket ticket;
  ticket.id = id;
  ticket.epoch = epoch;
  ticket.slots = {.first = id * 40, .count = 40};
  return ticket;
}

// Counts what an executor says.
struct Heard {
  TicketExecutor::Callbacks Callbacks() {
    return {.on_started = [this](const Ticket&) { policies.Note(); },
            .on_done =
                [this](const Ticket&, const absl::StatusOr<std::unique_ptr<Batch>>& batch) {
                  policies.Note();
                  const base::MutexLock lock(mutex);
                  (batch.ok() ? good : bad) += 1;
                  changed.NotifyAll();
                }};
  }
  void Await(int answers) {
    const base::MutexLock lock(mutex);
    changed.Wait(mutex,
                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return good + bad >= answers; });
  }

  Policies policies;
  base::Mutex mutex;
  base::CondVar changed;
  int good ABSL_GUARDED_BY(mutex) = 0;
  int bad ABSL_GUARDED_BY(mutex) = 0;
};

TEST(IdleThreadsTest, OnlySamplesAreProducedAtIdlePriority) {
  const WatchedProducer producer;
  Heard heard;
  {
    TicketExecutor executor({.name = "local", .threads = 3, .low_priority = true},
                            base::Clock::Real());
    executor.SetProducer(&producer);
    for (int64_t id = 0; id < 20; ++id) executor.Submit(TicketOf(id), heard.Callbacks());
    executor.Submit(TicketOf(20, CountingProducer::kRefusedEpoch), heard.Callbacks());
    heard.Await(21);
  }
  EXPECT_THAT(producer.samples.seen(), ElementsAre(SCHED_IDLE));
  EXPECT_THAT(producer.checks.seen(), ElementsAre(SCHED_OTHER));
  EXPECT_THAT(producer.allocations.seen(), ElementsAre(SCHED_OTHER));
  EXPECT_THAT(heard.policies.seen(), ElementsAre(SCHED_OTHER));
  const base::MutexLock lock(heard.mutex);
  EXPECT_EQ(heard.good, 20);
  EXPECT_EQ(heard.bad, 1);
  EXPECT_EQ(producer.produced, 20 * 40);
}

// The next ticket is not taken before a thread has nothing else to take, so it can be taken back.
TEST(IdleThreadsTest, ATicketThatNoThreadHasIsCancelled) {
  CountingProducer producer;
  producer.SetOpen(false);
  Heard heard;
  TicketExecutor executor({.name = "local", .threads = 2, .low_priority = true},
                          base::Clock::Real());
  executor.SetProducer(&producer);
  executor.Submit(TicketOf(0), heard.Callbacks());
  const TicketExecutor::Handle second = executor.Submit(TicketOf(1), heard.Callbacks());
  EXPECT_TRUE(executor.Cancel(second));
  EXPECT_FALSE(executor.Cancel(second));
  producer.SetOpen(true);
  heard.Await(1);
  EXPECT_EQ(producer.produced, 40);
}

TEST(IdleThreadsTest, WorkThatIsUnderwayWhenTheyEndIsDropped) {
  struct Work {
    std::atomic<bool> taken{false};
  };
  int runs = 0;  // guarded by mutex
  base::Mutex mutex;
  base::CondVar changed;
  auto threads = std::make_unique<IdleThreads<Work>>(
      "local", 2,
      IdleThreads<Work>::Calls{.open = [](const Work& work) { return !work.taken; },
                               .run =
                                   [&](Work* work, const std::stop_token& stop) {
                                     if (work->taken.exchange(true)) return false;
                                     const base::MutexLock lock(mutex);
                                     ++runs;
                                     changed.NotifyAll();
                                     changed.Wait(mutex, stop, [] { return false; });
                                     return true;
                                   }});
  std::vector<std::weak_ptr<Work>> given;
  for (int i = 0; i < 2; ++i) {
    const auto work = std::make_shared<Work>();
    given.emplace_back(work);
    threads->Give(work);
  }
  {
    const base::MutexLock lock(mutex);
    changed.Wait(mutex, [&] { return runs == 2; });
  }
  threads.reset();
  for (const auto& work : given) EXPECT_TRUE(work.expired());
}

// What came too late for a piece of the work may be the last to let go of it.
TEST(IdleThreadsTest, WorkIsDestroyedAtTheUsualPriority) {
  static Policies destroyed;
  struct Work {
    ~Work() { destroyed.Note(); }
    std::atomic<int> pieces{40};
    std::atomic<int> left{40};
  };
  IdleThreads<Work> threads("local", 4,
                            {.open = [](const Work& work) { return work.pieces > 0; },
                             .run =
                                 [](Work* work, const std::stop_token&) {
                                   int done = 0;
                                   while (--work->pieces >= 0) ++done;
                                   return done > 0 && work->left.fetch_sub(done) == done;
                                 }});
  for (int i = 0; i < 500; ++i) {
    threads.Give(std::make_shared<Work>());
    EXPECT_NE(threads.TakeDone({}), nullptr);
  }
  EXPECT_THAT(destroyed.seen(), ElementsAre(SCHED_OTHER));
}

TEST(IdleThreadsTest, AnExecutorThatHasEndedAnswersNothing) {
  CountingProducer producer;
  producer.SetOpen(false);
  Heard heard;
  auto executor = std::make_unique<TicketExecutor>(
      TicketExecutor::Options{.name = "local", .threads = 2, .low_priority = true},
      base::Clock::Real());
  executor->SetProducer(&producer);
  for (int64_t id = 0; id < 5; ++id) executor->Submit(TicketOf(id), heard.Callbacks());
  std::jthread opens([&] { producer.SetOpen(true); });
  executor.reset();
  const int64_t produced = producer.produced;
  opens.join();
  const base::MutexLock lock(heard.mutex);
  EXPECT_EQ(heard.bad, 0);
  EXPECT_LE(heard.good * 40, produced);
  EXPECT_EQ(producer.produced, produced);
}

}  // namespace
}  // namespace hetero::feed
