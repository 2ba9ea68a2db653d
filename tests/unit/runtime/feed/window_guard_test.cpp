// Which tickets a window issues guarded, that is to be produced in child processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using A = Window::Assignment;

base::Instant At(int64_t ms) { return base::Instant() + milliseconds(1'000'000 + ms); }

void BringUp(Window* window, int workers, int64_t ms = 0) {
  for (ProducerId id = 1; id <= workers; ++id) {
    window->Apply(Window::WorkerAdded{id}, At(ms));
    window->Apply(Window::StreamUp{id}, At(ms));
  }
}

TEST(WindowGuardTest, ATicketWhoseProducersEndedIsIssuedGuardedAndOthersAreNot) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 1);
  window.Apply(Window::Started{1, 0}, At(1));
  window.Apply(Window::StreamDown{1}, At(2));
  window.Apply(Window::WorkerRemoved{1}, At(2));
  window.Apply(Window::WorkerAdded{2}, At(3));
  // One end may have any cause.
  EXPECT_THAT(window.Apply(Window::StreamUp{2}, At(3)).issue, ElementsAre(A{2, 0}, A{2, 1}));
  window.Apply(Window::Started{2, 0}, At(4));
  window.Apply(Window::WorkerRemoved{2}, At(5));
  window.Apply(Window::WorkerAdded{3}, At(6));
  EXPECT_THAT(window.Apply(Window::StreamUp{3}, At(6)).issue, ElementsAre(A{3, 0, true}, A{3, 1}));
  // Once a sample was found that ends processes, a first end is suspicious.
  window.Apply(Window::Started{3, 0}, At(7));
  window.Apply(Window::Arrived{.producer = 3, .ticket = 0, .fatal = true}, At(8));
  window.Apply(Window::Started{3, 1}, At(9));
  window.Apply(Window::WorkerRemoved{3}, At(10));
  window.Apply(Window::WorkerAdded{4}, At(11));
  EXPECT_THAT(window.Apply(Window::StreamUp{4}, At(11)).issue, Contains(A{4, 1, true}));
}

TEST(WindowGuardTest, OwnCoresServeNoChargedTicketUnguarded) {
  Window window(
      {.tickets = 4, .byte_budget = 4, .batch_bytes = 1, .local = Window::Local::kLastResort});
  window.Apply(Window::WorkerAdded{1}, At(0));
  window.Apply(Window::StreamUp{1}, At(0));
  window.Apply(Window::Arrived{0, 0}, At(1));
  window.Apply(Window::Arrived{0, 1}, At(1));
  window.Apply(Window::Started{1, 2}, At(2));
  EXPECT_THAT(window.Apply(Window::StreamDown{1}, At(3)).issue,
              ElementsAre(A{0, 2, true}, A{0, 3}));
}

// Processes that end at once take the word that they have begun a ticket with them: nothing was
// charged, one after the other died of it, and then the trainer.
TEST(WindowGuardTest, AWorkerThatEndsBeforeItsFirstWordChargesItsFirstTicket) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  for (ProducerId id = 1; id <= 2; ++id) {
    window.Apply(Window::WorkerAdded{id}, At(id));
    EXPECT_THAT(window.Apply(Window::StreamUp{id}, At(id)).issue, ElementsAre(A{id, 0}, A{id, 1}));
    window.Apply(Window::WorkerRemoved{id}, At(id));
  }
  window.Apply(Window::WorkerAdded{3}, At(3));
  EXPECT_THAT(window.Apply(Window::StreamUp{3}, At(3)).issue, ElementsAre(A{3, 0, true}, A{3, 1}));
}

// They had taken it over before anybody had died of it.
TEST(WindowGuardTest, OwnCoresGiveBackATicketThatIsChargedBeforeTheyBegin) {
  Window window(
      {.tickets = 2, .byte_budget = 2, .batch_bytes = 1, .local = Window::Local::kLastResort});
  EXPECT_THAT(window.Apply(Window::Tick{}, At(0)).issue, ElementsAre(A{0, 0}, A{0, 1}));
  window.Apply(Window::Started{0, 0}, At(1));
  BringUp(&window, 1, 2);
  EXPECT_THAT(window.Apply(Window::Tick{}, At(60'000)).issue, Contains(A{1, 1}));
  window.Apply(Window::Started{1, 1}, At(60'001));
  const Window::Actions actions = window.Apply(Window::WorkerRemoved{1}, At(60'002));
  EXPECT_THAT(actions.cancel, ElementsAre(A{0, 1}));
  EXPECT_THAT(window.Apply(Window::Arrived{0, 0}, At(60'003)).issue, ElementsAre(A{0, 1, true}));
}

TEST(WindowGuardTest, AWorkerThatWasOnlyOutOfReachIsNoReasonToGuard) {
  Window window({.tickets = 4, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 1);
  for (int i = 0; i < 5; ++i) {
    window.Apply(Window::Started{1, 0}, At(10 * i + 1));
    window.Apply(Window::StreamDown{1}, At(10 * i + 2));
    EXPECT_THAT(window.Apply(Window::StreamUp{1}, At(10 * i + 3)).issue,
                ElementsAre(A{1, 0}, A{1, 1}));
  }
}

TEST(WindowGuardTest, ProducersWithoutMemoryForATicketMakeItGuarded) {
  Window window({.tickets = 1, .byte_budget = 4, .batch_bytes = 1});
  BringUp(&window, 3);
  const absl::Status error = absl::ResourceExhaustedError("8.jpg: there is no memory");
  EXPECT_THAT(window.Apply(Window::Failed{1, 0, error}, At(1)).issue, ElementsAre(A{2, 0}));
  EXPECT_THAT(window.Apply(Window::Failed{2, 0, error}, At(2)).issue, ElementsAre(A{3, 0, true}));
}

TEST(WindowGuardTest, ATicketThatEndsProcessesInSpiteOfItsGuardFails) {
  Window window({.tickets = 1, .byte_budget = 4, .batch_bytes = 1});
  ProducerId id = 0;
  BringUp(&window, 1);
  window.Apply(Window::Failed{1, 0, absl::DeadlineExceededError("8.jpg: took longer")}, At(0));
  window.Apply(Window::WorkerRemoved{1}, At(0));
  while (window.head_state() == Window::HeadState::kWaiting && id < 100) {
    ++id;
    window.Apply(Window::WorkerAdded{id}, At(id));
    window.Apply(Window::StreamUp{id}, At(id));
    window.Apply(Window::Started{id, 0}, At(id));
    window.Apply(Window::WorkerRemoved{id}, At(id));
  }
  EXPECT_EQ(id, Window::kMostCharges);
  // No wish of this rank to leave, and not the end of its generation: the job ends with this.
  EXPECT_TRUE(absl::IsInternal(window.head_error())) << window.head_error();
  EXPECT_THAT(std::string(window.head_error().message()), ::testing::HasSubstr("8.jpg"));
}

TEST(WindowGuardTest, AnErrorOfAProducerIsNoWordAboutTheWholeStream) {
  for (const absl::Status& error : {absl::AbortedError("a"), absl::CancelledError("a"),
                                    absl::OutOfRangeError("a"), absl::NotFoundError("a")}) {
    Window window({.tickets = 1, .byte_budget = 4, .batch_bytes = 1});
    BringUp(&window, 3);
    for (ProducerId id = 1; id <= 3; ++id) window.Apply(Window::Failed{id, 0, error}, At(id));
    ASSERT_EQ(window.head_state(), Window::HeadState::kFailed);
    EXPECT_EQ(window.head_error(), absl::IsNotFound(error) ? error : absl::InternalError("a"));
  }
}

// A sample may take memory for longer than the reissue delay before its process is ended. Nobody
// was charged then, and the own cores served it unguarded when all workers were late.
TEST(WindowGuardTest, AWorkerThatWasLateChargesItsTicketWhenItEnds) {
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  for (ProducerId id = 1; id <= 2; ++id) {
    window.Apply(Window::WorkerAdded{id}, At(5000 * id));
    EXPECT_THAT(window.Apply(Window::StreamUp{id}, At(5000 * id)).issue, ElementsAre(A{id, 0}));
    window.Apply(Window::Started{id, 0}, At(5000 * id + 1));
    window.Apply(Window::Tick{}, At(5000 * id + 2000));
    EXPECT_TRUE(window.frozen(id));
    window.Apply(Window::WorkerRemoved{id}, At(5000 * id + 3000));
  }
  window.Apply(Window::WorkerAdded{3}, At(20'000));
  EXPECT_THAT(window.Apply(Window::StreamUp{3}, At(20'000)).issue, ElementsAre(A{3, 0, true}));
}

TEST(WindowGuardTest, WhatWorkersAreLateWithIsGuardedBeforeTheyEnd) {
  Window window(
      {.tickets = 4, .byte_budget = 2, .batch_bytes = 1, .local = Window::Local::kLastResort});
  window.Apply(Window::WorkerAdded{1}, At(0));  // the own cores take the first two
  window.Apply(Window::StreamUp{1}, At(0));
  for (const int64_t ticket : {0, 1}) window.Apply(Window::Arrived{0, ticket}, At(1));
  window.Apply(Window::Consumed{}, At(2));
  EXPECT_THAT(window.Apply(Window::Consumed{}, At(2)).issue, ElementsAre(A{1, 3}));
  window.Apply(Window::Started{1, 2}, At(3));
  const Window::Actions late = window.Apply(Window::Tick{}, At(2000));
  EXPECT_TRUE(window.frozen(1));
  EXPECT_THAT(late.issue, ElementsAre(A{0, 2, true}, A{0, 3}));
}

TEST(WindowGuardTest, TwoWorkersAtMostServeOneTicketUnguarded) {
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  BringUp(&window, 4);
  std::vector<A> issued;
  for (int64_t ms = 1; ms < 20'000; ms += 25) {
    for (const A& issue : window.Apply(Window::Tick{}, At(ms)).issue) {
      issued.push_back(issue);
      window.Apply(Window::Started{issue.producer, issue.ticket}, At(ms));
    }
  }
  EXPECT_THAT(issued, ElementsAre(A{2, 0}, A{3, 0, true}, A{4, 0, true}));
}

TEST(WindowGuardTest, ACutNetworkToManyWorkersFailsNoTicket) {
  constexpr int kWorkers = Window::kMostCharges + 2;
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  BringUp(&window, kWorkers);
  int64_t ms = 0;
  for (; ms < 20'000; ms += 25) window.Apply(Window::Tick{}, At(ms));
  for (ProducerId id = 1; id <= kWorkers; ++id) {
    EXPECT_TRUE(window.frozen(id)) << id;  // each has had it
    window.Apply(Window::StreamDown{id}, At(ms));
  }
  EXPECT_EQ(window.head_state(), Window::HeadState::kWaiting);
  EXPECT_THAT(window.Apply(Window::StreamUp{1}, At(ms)).issue, ElementsAre(A{1, 0, true}));
}

// The ticket of `window` is charged with two workers that nobody hears of again.
void ChargeTwice(Window* window) {
  for (ProducerId id = 101; id <= 102; ++id) {
    window->Apply(Window::WorkerAdded{id}, At(0));
    window->Apply(Window::StreamUp{id}, At(0));
    window->Apply(Window::Started{id, 0}, At(0));
    window->Apply(Window::WorkerRemoved{id}, At(0));
  }
}

// In a child there are no threads for an operator to wait for: a healthy sample failed the job.
TEST(WindowGuardTest, WhatTakesTooLongInAChildIsTriedOnceByAWorkerItself) {
  const absl::Status error = absl::DeadlineExceededError("8.jpg: took longer than 60 s");
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  ChargeTwice(&window);
  window.Apply(Window::WorkerAdded{1}, At(1));
  EXPECT_THAT(window.Apply(Window::StreamUp{1}, At(1)).issue, ElementsAre(A{1, 0, true}));
  window.Apply(Window::WorkerAdded{2}, At(2));
  window.Apply(Window::StreamUp{2}, At(2));
  EXPECT_THAT(window.Apply(Window::Failed{1, 0, error}, At(3)).issue, ElementsAre(A{2, 0, false}));
  // If that is its end, nobody else serves it so.
  window.Apply(Window::Started{2, 0}, At(4));
  EXPECT_THAT(window.Apply(Window::WorkerRemoved{2}, At(5)).issue, ElementsAre(A{1, 0, true}));
  EXPECT_THAT(window.Apply(Window::Failed{1, 0, error}, At(6)).issue, ElementsAre(A{1, 0, true}));
  window.Apply(Window::Failed{1, 0, error}, At(7));
  EXPECT_EQ(window.head_state(), Window::HeadState::kFailed);
  EXPECT_EQ(window.head_error(), error);
}

TEST(WindowGuardTest, AWorkerThatWasOnlyOutOfReachHasNotTriedIt) {
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  ChargeTwice(&window);
  BringUp(&window, 2, 1);
  const absl::Status error = absl::DeadlineExceededError("8.jpg: took longer than 60 s");
  EXPECT_THAT(window.Apply(Window::Failed{1, 0, error}, At(3)).issue, ElementsAre(A{2, 0, false}));
  window.Apply(Window::WorkerRemoved{1}, At(4));
  window.Apply(Window::StreamDown{2}, At(4));
  EXPECT_THAT(window.Apply(Window::StreamUp{2}, At(5)).issue, ElementsAre(A{2, 0, false}));
}

// Its samples take minutes each: children are no way to make it.
TEST(WindowGuardTest, ASlowTicketOfWhichNobodyEndsIsNotGuardedOnceThatTookTooLong) {
  Window window({.tickets = 1, .byte_budget = 2, .batch_bytes = 1});
  BringUp(&window, 5);
  std::vector<A> issued;
  for (int64_t ms = 1; ms < 30'000; ms += 25) {
    Window::Actions actions = window.Apply(Window::Tick{}, At(ms));
    for (size_t i = 0; i < actions.issue.size(); ++i) {
      const A issue = actions.issue[i];
      issued.push_back(issue);
      window.Apply(Window::Started{issue.producer, 0}, At(ms));
      if (!issue.guarded) continue;
      const Window::Actions failed =
          window.Apply(Window::Failed{issue.producer, 0, absl::DeadlineExceededError("")}, At(ms));
      actions.issue.insert(actions.issue.end(), failed.issue.begin(), failed.issue.end());
    }
  }
  ASSERT_GE(issued.size(), 4u);
  issued.resize(4);
  EXPECT_THAT(issued, ElementsAre(A{2, 0}, A{3, 0, true}, A{4, 0}, A{5, 0}));
}

TEST(WindowGuardTest, OwnCoresNeverTryAChargedTicketThatTookTooLong) {
  Window window(
      {.tickets = 3, .byte_budget = 2, .batch_bytes = 1, .local = Window::Local::kLastResort});
  BringUp(&window, 1);  // the own cores have the first two
  for (const int64_t ticket : {0, 1}) window.Apply(Window::Arrived{0, ticket}, At(1));
  for (int i = 0; i < 2; ++i) window.Apply(Window::Consumed{}, At(2));
  window.Apply(Window::Started{1, 2}, At(3));
  EXPECT_THAT(window.Apply(Window::WorkerRemoved{1}, At(4)).issue, ElementsAre(A{0, 2, true}));
  const absl::Status error = absl::DeadlineExceededError("8.jpg: took longer than 60 s");
  for (int64_t ms = 5; ms < 7; ++ms) {
    EXPECT_THAT(window.Apply(Window::Failed{0, 2, error}, At(ms)).issue,
                ElementsAre(A{0, 2, true}));
  }
}

// They are guarded only because some process ended before, of whatever.
TEST(WindowGuardTest, OwnCoresThatTakeTooLongInChildrenStopSuspectingTickets) {
  Window window({.tickets = 8,
                 .byte_budget = 8,
                 .batch_bytes = 1,
                 .local = Window::Local::kLastResort,
                 .suspect = 4});
  EXPECT_THAT(window.Apply(Window::Tick{}, At(0)).issue, ElementsAre(A{0, 0, true}, A{0, 1, true}));
  const absl::Status error = absl::DeadlineExceededError("8.jpg: took longer than 60 s");
  EXPECT_THAT(window.Apply(Window::Failed{0, 0, error}, At(1)).issue, ElementsAre(A{0, 0, false}));
  EXPECT_THAT(window.Apply(Window::Failed{0, 1, error}, At(1)).issue, ElementsAre(A{0, 1, false}));
  EXPECT_THAT(window.Apply(Window::Arrived{0, 0}, At(2)).issue, ElementsAre(A{0, 2, false}));
}

}  // namespace
}  // namespace hetero::feed
