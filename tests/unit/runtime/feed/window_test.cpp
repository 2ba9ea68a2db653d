#include "runtime/feed/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using A = Window::Assignment;

base::Instant At(int64_t ms) { return base::Instant() + milliseconds(1'000'000 + ms); }

// Brings `workers` producers 1..n up and returns what the last event issued.
Window::Actions BringUp(Window* window, int workers, int64_t ms = 0) {
  Window::Actions all;
  for (ProducerId id = 1; id <= workers; ++id) {
    window->Apply(Window::WorkerAdded{id}, At(ms));
    const Window::Actions actions = window->Apply(Window::StreamUp{id}, At(ms));
    all.issue.insert(all.issue.end(), actions.issue.begin(), actions.issue.end());
  }
  return all;
}

TEST(WindowTest, FirstCreditIsTwoTicketsPerWorker) {
  Window window({.tickets = 10, .byte_budget = 8, .batch_bytes = 1});
  EXPECT_THAT(BringUp(&window, 2).issue, ElementsAre(A{1, 0}, A{1, 1}, A{2, 2}, A{2, 3}));
}

// Of workers that are equal, as far as is known, all ranks would ask the same ones.
TEST(WindowTest, RanksBeginToAskAtDifferentWorkers) {
  std::map<ProducerId, int> asked;
  for (int32_t rank = 0; rank < 64; ++rank) {
    Window window(
        {.tickets = 10, .byte_budget = 2, .batch_bytes = 1, .start = Window::StartOf(rank)});
    constexpr ProducerId kFirst = 1000;  // has all until it goes
    window.Apply(Window::WorkerAdded{kFirst}, At(0));
    window.Apply(Window::StreamUp{kFirst}, At(0));
    ASSERT_THAT(BringUp(&window, 128).issue, IsEmpty());
    for (const A& issue : window.Apply(Window::WorkerRemoved{kFirst}, At(1)).issue) {
      ++asked[issue.producer];
    }
  }
  EXPECT_GT(asked.size(), 64);
  for (const auto& [id, times] : asked) EXPECT_LE(times, 3) << id;
}

// Numbers of workers that are gone are not given again.
TEST(WindowTest, RanksBeginAtDifferentWorkersAfterAllWereReplaced) {
  std::map<ProducerId, int> asked;
  for (int32_t rank = 0; rank < 64; ++rank) {
    Window window({.tickets = 10,
                   .byte_budget = 2,
                   .batch_bytes = 1,
                   .local = Window::Local::kLastResort,
                   .start = Window::StartOf(rank)});
    window.Apply(Window::Tick{}, At(0));  // own cores have all at first
    for (ProducerId id = 1001; id <= 1128; ++id) {
      window.Apply(Window::WorkerAdded{id}, At(0));
      window.Apply(Window::StreamUp{id}, At(0));
    }
    for (const int64_t ticket : {0, 1}) {
      window.Apply(Window::Arrived{kLocalProducer, ticket}, At(1));
      for (const A& issue : window.Apply(Window::Consumed{}, At(1)).issue) ++asked[issue.producer];
    }
  }
  EXPECT_GT(asked.size(), 60);
  for (const auto& [id, times] : asked) EXPECT_LE(times, 3) << id;
}

TEST(WindowTest, NeverIssuesBeyondTheWindow) {
  Window window({.tickets = 10, .byte_budget = 3, .batch_bytes = 1});
  EXPECT_THAT(BringUp(&window, 5).issue, ElementsAre(A{1, 0}, A{1, 1}, A{2, 2}));
}

TEST(WindowTest, LocalServesOnlyWhileNoWorkerIsUp) {
  Window window(
      {.tickets = 10, .byte_budget = 8, .batch_bytes = 1, .local = Window::Local::kLastResort});
  EXPECT_THAT(window.Apply(Window::Tick{}, At(0)).issue, ElementsAre(A{0, 0}, A{0, 1}));
  EXPECT_THAT(BringUp(&window, 1).issue, ElementsAre(A{1, 2}, A{1, 3}));
  EXPECT_THAT(window.Apply(Window::Arrived{0, 0}, At(1)).issue, IsEmpty());
  // Guarded: the worker may have ended of it before word of its start was out.
  EXPECT_THAT(window.Apply(Window::StreamDown{1}, At(2)).issue, ElementsAre(A{0, 2, true}));
}

TEST(WindowTest, ConnectedWorkersAreThoseWithAStream) {
  Window window(
      {.tickets = 10, .byte_budget = 8, .batch_bytes = 1, .local = Window::Local::kShares});
  EXPECT_EQ(window.connected_workers(), 0);  // this host's own cores are no worker
  BringUp(&window, 2);
  window.Apply(Window::WorkerAdded{3}, At(1));
  EXPECT_EQ(window.connected_workers(), 2);
  window.Apply(Window::StreamDown{1}, At(2));
  EXPECT_EQ(window.connected_workers(), 1);
}

TEST(WindowTest, WithoutLocalAndWorkersItWaits) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  EXPECT_THAT(window.Apply(Window::Tick{}, At(60'000)).issue, IsEmpty());
  EXPECT_EQ(window.head_state(), Window::HeadState::kWaiting);
}

TEST(WindowTest, LostWorkersTicketsAreIssuedElsewhereAtOnce) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 2);
  window.Apply(Window::Started{2, 2}, At(1));
  window.Apply(Window::Arrived{2, 2}, At(2));
  window.Apply(Window::Arrived{2, 3}, At(3));
  EXPECT_THAT(window.Apply(Window::WorkerRemoved{1}, At(4)).issue, ElementsAre(A{2, 0}, A{2, 1}));
  EXPECT_EQ(window.reissued(), 2);
}

TEST(WindowTest, SilentProducerOfTheHeadIsFrozenAndAllItsTicketsGoElsewhere) {
  Window window({.tickets = 8, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 2);
  window.Apply(Window::Started{2, 2}, At(10));
  window.Apply(Window::Arrived{2, 2}, At(20));
  window.Apply(Window::Started{2, 3}, At(20));
  window.Apply(Window::Arrived{2, 3}, At(30));
  EXPECT_THAT(window.Apply(Window::Tick{}, At(200)).issue, IsEmpty());
  EXPECT_THAT(window.Apply(Window::Tick{}, At(201)).issue, ElementsAre(A{2, 0}, A{2, 1}));
  EXPECT_TRUE(window.frozen(1));
  window.Apply(Window::Started{2, 0}, At(210));
  const Window::Actions filled = window.Apply(Window::Arrived{2, 0}, At(220));
  EXPECT_THAT(filled.cancel, ElementsAre(A{1, 0}));
  EXPECT_THAT(window.Apply(Window::Consumed{}, At(221)).issue, ElementsAre(A{2, 4}));
  // The last ticket stays with the frozen worker: its answer is how it comes back.
  EXPECT_THAT(window.Apply(Window::Arrived{2, 1}, At(222)).cancel, IsEmpty());
  EXPECT_EQ(window.outstanding(1), 1);
  window.Apply(Window::Started{1, 1}, At(60'000));
  EXPECT_FALSE(window.frozen(1));
  EXPECT_FALSE(window.Apply(Window::Arrived{1, 1}, At(60'010)).accepted);
  EXPECT_EQ(window.duplicates(), 1);
}

TEST(WindowTest, OverdueHeadIsTimedFromItsOwnStart) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 2);
  // A median of 100 ms: the delay is 300 ms.
  window.Apply(Window::Started{1, 1}, At(0));
  window.Apply(Window::Arrived{1, 1}, At(100));
  EXPECT_EQ(window.ReissueDelay(), milliseconds(300));
  window.Apply(Window::Started{1, 0}, At(150));
  EXPECT_THAT(window.Apply(Window::Tick{}, At(450)).issue, IsEmpty());
  EXPECT_THAT(window.Apply(Window::Tick{}, At(451)).issue, Contains(A{2, 0}));
}

TEST(WindowTest, BusyWorkerWithAnOldHeadKeepsItsOtherTickets) {
  Window window({.tickets = 6, .byte_budget = 6, .batch_bytes = 1});
  BringUp(&window, 2);
  window.Apply(Window::Started{2, 2}, At(0));
  window.Apply(Window::Arrived{2, 2}, At(10));  // delay is 200 ms
  window.Apply(Window::Started{1, 0}, At(50));
  window.Apply(Window::Started{1, 1}, At(245));  // a sign of life
  const Window::Actions actions = window.Apply(Window::Tick{}, At(251));
  EXPECT_THAT(actions.issue, ElementsAre(A{2, 0}));
  EXPECT_FALSE(window.frozen(1));
}

TEST(WindowTest, FirstArrivalFillsTheSlotAndLaterOnesAreDropped) {
  Window window({.tickets = 2, .byte_budget = 2, .batch_bytes = 1});
  BringUp(&window, 2);
  EXPECT_TRUE(window.Apply(Window::Arrived{1, 0}, At(1)).accepted);
  EXPECT_FALSE(window.Apply(Window::Arrived{2, 0}, At(2)).accepted);
  window.Apply(Window::Consumed{}, At(3));
  EXPECT_FALSE(window.Apply(Window::Arrived{2, 0}, At(4)).accepted);
  EXPECT_EQ(window.duplicates(), 2);
}

TEST(WindowTest, TicketFailsAfterThreeAttemptsOnDifferentProducers) {
  Window window(
      {.tickets = 1, .byte_budget = 2, .batch_bytes = 1, .local = Window::Local::kLastResort});
  window.Apply(Window::Tick{}, At(0));
  window.Apply(Window::WorkerAdded{1}, At(0));
  window.Apply(Window::StreamUp{1}, At(0));
  const absl::Status error = absl::NotFoundError("no such file");
  EXPECT_THAT(window.Apply(Window::Failed{0, 0, error}, At(1)).issue, ElementsAre(A{1, 0}));
  EXPECT_THAT(window.Apply(Window::Failed{1, 0, error}, At(2)).issue, ElementsAre(A{0, 0}));
  EXPECT_THAT(window.Apply(Window::Failed{0, 0, error}, At(3)).issue, IsEmpty());
  EXPECT_EQ(window.head_state(), Window::HeadState::kFailed);
  EXPECT_EQ(window.head_error(), error);
}

// Serves what a window issues: the first `stale` of eight workers fail everything at once, the
// others take 10 ms each.
struct StaleMounts {
  explicit StaleMounts(ProducerId stale, int64_t tickets)
      : stale_workers(stale), window({.tickets = tickets, .byte_budget = 32, .batch_bytes = 1}) {
    for (ProducerId id = 1; id <= 8; ++id) {
      Apply(Window::WorkerAdded{id});
      Apply(Window::StreamUp{id});
    }
  }
  void Apply(const Window::Event& event) {
    const Window::Actions actions = window.Apply(event, At(now));
    for (const auto& cancel : actions.cancel) std::erase(queues[cancel.producer], cancel.ticket);
    for (const auto& issue : actions.issue) queues[issue.producer].push_back(issue.ticket);
    for (const auto& one : actions.quarantined) quarantined.push_back(one.producer);
    for (const ProducerId id : actions.recovered) recovered.push_back(id);
  }
  void RunFor(int64_t ms) {
    for (const int64_t end = now + ms; now < end && window.head_state() != State::kFailed; ++now) {
      if (window.head_state() == State::kEnd) return;
      for (ProducerId id = 1; id <= 8; ++id) {
        if (queues[id].empty()) continue;
        const int64_t ticket = queues[id].front();
        if (id <= stale_workers) {
          queues[id].erase(queues[id].begin());
          ++failures;
          Apply(Window::Failed{id, ticket, absl::NotFoundError("stale file handle")});
        } else if (now % 10 == 0) {
          queues[id].erase(queues[id].begin());
          Apply(Window::Started{id, ticket});
          Apply(Window::Arrived{.producer = id, .ticket = ticket, .bytes = 1});
        }
      }
      while (window.head_state() == State::kFilled) Apply(Window::Consumed{});
      if (now % 25 == 0) Apply(Window::Tick{});
    }
  }

  using State = Window::HeadState;
  ProducerId stale_workers;
  int64_t now = 1;
  int64_t failures = 0;
  std::map<ProducerId, std::vector<int64_t>> queues;
  std::vector<ProducerId> quarantined, recovered;
  Window window;
};

TEST(WindowTest, WorkersThatFailFastDoNotAttractTheWorkAndFailNoJob) {
  StaleMounts job(3, 4000);
  job.RunFor(60'000);
  EXPECT_EQ(job.window.head_state(), Window::HeadState::kEnd) << job.window.head_error();
  // Three before each first quarantine, then one a trial: after 1, 2, 4, 8 s.
  EXPECT_LE(job.failures, 3 * (3 + 5));
  EXPECT_THAT(job.quarantined, ::testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(job.recovered, IsEmpty());
}

TEST(WindowTest, AWorkerWhoseMountIsBackLeavesItsQuarantine) {
  StaleMounts job(1, 100'000);
  job.RunFor(500);
  EXPECT_THAT(job.quarantined, ElementsAre(1));
  EXPECT_EQ(job.window.outstanding(1), 0);
  job.stale_workers = 0;
  job.RunFor(1500);
  EXPECT_THAT(job.recovered, ElementsAre(1));
  EXPECT_GE(job.window.outstanding(1), 1);
}

TEST(WindowTest, WhereEverybodyFailsTheJobFailsAtOnceWithTheReason) {
  StaleMounts job(8, 100);
  job.RunFor(1000);
  EXPECT_EQ(job.window.head_state(), Window::HeadState::kFailed);
  EXPECT_EQ(job.window.head_error().message(), "stale file handle");
  EXPECT_LT(job.now, 100);
}

TEST(WindowTest, OwnCoresTryATicketBeforeItFails) {
  Window window(
      {.tickets = 1, .byte_budget = 2, .batch_bytes = 1, .local = Window::Local::kLastResort});
  for (ProducerId id = 1; id <= 5; ++id) {
    window.Apply(Window::WorkerAdded{id}, At(0));
    window.Apply(Window::StreamUp{id}, At(0));
  }
  const absl::Status error = absl::NotFoundError("no such file");
  // It went to the own cores first, when nobody was there.
  EXPECT_THAT(window.Apply(Window::Failed{0, 0, error}, At(1)).issue, ElementsAre(A{1, 0}));
  for (ProducerId id = 1; id < 5; ++id) {
    EXPECT_THAT(window.Apply(Window::Failed{id, 0, error}, At(1 + id)).issue,
                ElementsAre(A{id + 1, 0}));
    EXPECT_EQ(window.head_state(), Window::HeadState::kWaiting);
  }
  EXPECT_THAT(window.Apply(Window::Failed{5, 0, error}, At(7)).issue, IsEmpty());
  EXPECT_EQ(window.head_state(), Window::HeadState::kFailed);
}

TEST(WindowTest, AFileThatNobodyCanReadFailsAfterThreeWhoDeliverOthers) {
  Window window({.tickets = 100, .byte_budget = 100, .batch_bytes = 1});
  std::vector<A> issued = BringUp(&window, 8).issue;
  int failures = 0;
  int64_t now = 0;
  while (window.head_state() == Window::HeadState::kWaiting && !issued.empty()) {
    const A next = issued.front();
    issued.erase(issued.begin());
    Window::Actions actions;
    if (next.ticket == 0) {
      ++failures;
      actions = window.Apply(
          Window::Failed{next.producer, 0, absl::InternalError("bad.jpg: I/O error")}, At(++now));
    } else {
      actions = window.Apply(Window::Arrived{next.producer, next.ticket}, At(++now));
    }
    issued.insert(issued.end(), actions.issue.begin(), actions.issue.end());
  }
  EXPECT_EQ(window.head_state(), Window::HeadState::kFailed);
  EXPECT_LE(failures, 6);
}

TEST(WindowTest, EmptyTicketsNeedNoProducer) {
  Window window({.tickets = 2, .byte_budget = 2, .batch_bytes = 1, .is_empty = [](int64_t id) {
                   return id == 1;
                 }});
  BringUp(&window, 1);
  window.Apply(Window::Arrived{1, 0}, At(1));
  window.Apply(Window::Consumed{}, At(1));
  EXPECT_EQ(window.head_state(), Window::HeadState::kFilled);
  window.Apply(Window::Consumed{}, At(1));
  EXPECT_EQ(window.head_state(), Window::HeadState::kEnd);
}

TEST(WindowTest, CreditGrowsForTheFastWorkerOnly) {
  Window window({.tickets = 1000, .byte_budget = 32, .batch_bytes = 1});
  std::vector<A> pending = BringUp(&window, 2).issue;
  std::map<ProducerId, int64_t> free_at, most;
  for (int i = 0; i < 400; ++i) {
    const auto next = std::min_element(pending.begin(), pending.end(), [&](A a, A b) {
      const auto done = [&](A t) { return free_at[t.producer] + (t.producer == 1 ? 10 : 100); };
      return std::pair(done(a), a.ticket) < std::pair(done(b), b.ticket);
    });
    const A ticket = *next;
    pending.erase(next);
    window.Apply(Window::Started{ticket.producer, ticket.ticket}, At(free_at[ticket.producer]));
    free_at[ticket.producer] += ticket.producer == 1 ? 10 : 100;
    std::vector<Window::Actions> done = {window.Apply(
        Window::Arrived{ticket.producer, ticket.ticket}, At(free_at[ticket.producer]))};
    while (window.head_state() == Window::HeadState::kFilled) {
      done.push_back(window.Apply(Window::Consumed{}, At(free_at[ticket.producer])));
    }
    for (const Window::Actions& actions : done) {
      for (const A& issued : actions.issue) pending.push_back(issued);
    }
    for (const ProducerId id : {1, 2}) most[id] = std::max(most[id], window.outstanding(id));
  }
  EXPECT_GE(most[1], 16);
  EXPECT_LE(most[2], 4);
}

// How many times a window of 128 asks for 4,000 tickets, whose batches take `each`.
int TimesAsked(base::Duration each) {
  constexpr int64_t kTickets = 4000, kCapacity = 128;
  Window window({.tickets = kTickets, .byte_budget = kCapacity, .batch_bytes = 1});
  std::deque<A> pending;
  int issues = 0;
  int64_t fewest = kCapacity;
  const auto take = [&](const Window::Actions& actions) {
    pending.insert(pending.end(), actions.issue.begin(), actions.issue.end());
    issues += actions.issue.empty() ? 0 : 1;
  };
  take(BringUp(&window, 1));
  for (int64_t i = 0; i < kTickets; ++i) {
    if (pending.empty()) {
      ADD_FAILURE() << "nothing is asked for at " << i;
      return -1;
    }
    const A ticket = pending.front();
    pending.pop_front();
    const base::Instant begun = At(0) + i * each, done = begun + each;
    take(window.Apply(Window::Started{1, ticket.ticket}, begun));
    take(window.Apply(Window::Arrived{1, ticket.ticket}, done));
    take(window.Apply(Window::Consumed{}, done));
    if (i > 1000 && i < kTickets - kCapacity) fewest = std::min(fewest, window.outstanding(1));
  }
  EXPECT_EQ(window.head_state(), Window::HeadState::kEnd);
  // Never less than three quarters of what it may have, at most a second of work.
  EXPECT_GE(fewest, std::min<int64_t>(kCapacity, std::chrono::seconds(1) / each) * 3 / 4 - 1);
  return issues;
}

TEST(WindowTest, ManySmallBatchesAreAskedForInBundles) {
  EXPECT_LT(TimesAsked(std::chrono::microseconds(100)), 4000 / 16);
  EXPECT_GT(TimesAsked(milliseconds(20)), 3000);  // where a message each costs nothing
}

}  // namespace
}  // namespace hetero::feed
