// Workers whose machines are about to go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/feed/window.h"

namespace hetero::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using A = Window::Assignment;

base::Instant At(int64_t ms) { return base::Instant() + std::chrono::milliseconds(1'000'000 + ms); }

class WindowLeavingTest : public ::testing::Test {
 protected:
  void BringUp(ProducerId workers) {
    for (ProducerId id = 1; id <= workers; ++id) {
      window_.Apply(Window::WorkerAdded{id}, At(0));
      window_.Apply(Window::StreamUp{id}, At(0));
    }
  }

  Window window_{{.tickets = 20, .byte_budget = 8, .batch_bytes = 1}};
};

TEST_F(WindowLeavingTest, GivesBackWhatItHasNotBegunAndFinishesTheRest) {
  BringUp(2);
  window_.Apply(Window::Started{1, 0}, At(1));
  window_.Apply(Window::Arrived{2, 2}, At(1));
  const Window::Actions actions = window_.Apply(Window::WorkerTurned{1, true}, At(2));
  EXPECT_THAT(actions.cancel, ElementsAre(A{1, 1}));
  EXPECT_EQ(window_.outstanding(1), 1);
  EXPECT_TRUE(window_.Apply(Window::Arrived{1, 0}, At(3)).accepted);
  EXPECT_EQ(window_.outstanding(1), 0);
  for (int64_t ticket = 1; ticket < 20; ++ticket) {
    window_.Apply(Window::Arrived{2, ticket}, At(3 + ticket));
    while (window_.head_state() == Window::HeadState::kFilled) {
      window_.Apply(Window::Consumed{}, At(3 + ticket));
    }
    EXPECT_EQ(window_.outstanding(1), 0);
  }
  EXPECT_EQ(window_.head_state(), Window::HeadState::kEnd);
}

TEST_F(WindowLeavingTest, WhereAllAreAboutToGoTheyWorkOn) {
  BringUp(2);
  window_.Apply(Window::WorkerTurned{1, true}, At(1));
  EXPECT_THAT(window_.Apply(Window::WorkerTurned{2, true}, At(2)).cancel, IsEmpty());
  EXPECT_GT(window_.outstanding(1), 0);
  EXPECT_GT(window_.outstanding(2), 0);
}

// They were starved, while the own cores, which are few and at idle priority, did all.
TEST_F(WindowLeavingTest, WhereAllAreAboutToGoTheyWorkOnBesideOwnCoresThatShare) {
  Window window(
      {.tickets = 20, .byte_budget = 8, .batch_bytes = 1, .local = Window::Local::kShares});
  window.Apply(Window::WorkerAdded{1}, At(0));
  window.Apply(Window::StreamUp{1}, At(0));
  for (const ProducerId id : {0, 1}) {
    const int64_t ticket = window.producers().at(id).outstanding().begin()->first;
    window.Apply(Window::Started{id, ticket}, At(0));
    window.Apply(Window::Arrived{id, ticket, 1, std::chrono::milliseconds(1)}, At(1));
  }
  window.Apply(Window::WorkerTurned{1, true}, At(2));
  EXPECT_GT(window.outstanding(1), 0);
  EXPECT_GT(window.worker_rate(), 0);
}

TEST_F(WindowLeavingTest, OnesThatRestDoNotCountAsWorking) {
  BringUp(2);
  window_.Apply(Window::Started{1, 0}, At(0));
  window_.Apply(Window::Arrived{1, 0, 1, std::chrono::milliseconds(1)}, At(1));
  EXPECT_GT(window_.worker_rate(), 0);
  window_.Apply(Window::WorkerTurned{1, true}, At(2));
  EXPECT_EQ(window_.worker_rate(), 0) << "the other has not been measured";
}

TEST_F(WindowLeavingTest, ServesAgainWhenTheLastThatStaysIsLost) {
  BringUp(2);
  window_.Apply(Window::WorkerTurned{1, true}, At(1));
  EXPECT_EQ(window_.outstanding(1), 0);
  window_.Apply(Window::StreamDown{2}, At(2));
  EXPECT_GT(window_.outstanding(1), 0);
}

TEST_F(WindowLeavingTest, TakesATicketThatAllWhoStayHaveFailed) {
  BringUp(2);
  window_.Apply(Window::WorkerTurned{1, true}, At(1));
  const absl::Status error = absl::NotFoundError("stale file handle");
  EXPECT_THAT(window_.Apply(Window::Failed{2, 0, error}, At(2)).issue, ElementsAre(A{1, 0}));
}

TEST_F(WindowLeavingTest, StaysAfterAll) {
  BringUp(2);
  window_.Apply(Window::WorkerTurned{1, true}, At(1));
  window_.Apply(Window::WorkerTurned{1, false}, At(2));
  EXPECT_GT(window_.outstanding(1), 0);
}

TEST_F(WindowLeavingTest, NobodyTurnsThatIsNotThere) {
  EXPECT_THAT(window_.Apply(Window::WorkerTurned{7, true}, At(1)).cancel, IsEmpty());
}

}  // namespace
}  // namespace hetero::feed
