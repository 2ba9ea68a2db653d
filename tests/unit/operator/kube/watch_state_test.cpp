#include "operator/kube/watch_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::kube {
namespace {

using Action = WatchAction;
using How = WatchEnded::How;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const base::Duration kLong = std::chrono::minutes(4);
const base::Duration kShort = std::chrono::milliseconds(999);

WatchState At(decltype(WatchState::phase) phase) { return {.phase = std::move(phase)}; }

TEST(WatchStateTest, StartsWithTheFirstPage) {
  const WatchStep step = Step({}, Started{});
  EXPECT_EQ(step.state, At(InitPage{}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kBeginList, Action::kFetchPage));
}

TEST(WatchStateTest, PagesFollowTheirTokenAndTheLastOpensTheWatch) {
  WatchStep step = Step(At(InitPage{}), PageArrived{"7", "next"});
  EXPECT_EQ(step.state, At(InitPage{"next"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kApplyPage, Action::kFetchPage));
  step = Step(step.state, PageArrived{"7", ""});
  EXPECT_EQ(step.state, At(InitListed{"7"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kApplyPage, Action::kEndList, Action::kOpenWatch));
}

TEST(WatchStateTest, FailedPageIsAskedForAgainButAnExpiredOneStartsOver) {
  WatchStep step = Step(At(InitPage{"next"}), ListFailed{.expired = false});
  EXPECT_EQ(step.state, At(InitPage{"next"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kFetchPage));
  step = Step(At(InitPage{"next"}), ListFailed{.expired = true});
  EXPECT_EQ(step.state, At(InitPage{}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kBeginList, Action::kFetchPage));
}

TEST(WatchStateTest, EventsMoveTheVersion) {
  WatchStep step = Step(At(InitListed{"7"}), ObjectChanged{"8"});
  EXPECT_EQ(step.state, At(Watching{"8"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kApplyObject));
  step = Step(step.state, ObjectDeleted{"9"});
  EXPECT_EQ(step.state, At(Watching{"9"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kRemoveObject));
  step = Step(step.state, Bookmarked{"20"});
  EXPECT_EQ(step.state, At(Watching{"20"}));
  EXPECT_THAT(step.actions, IsEmpty());
}

TEST(WatchStateTest, AnObjectWithoutVersionKeepsTheLastOne) {
  EXPECT_EQ(Step(At(Watching{"8"}), ObjectChanged{""}).state, At(Watching{"8"}));
  EXPECT_EQ(Step(At(InitListed{"7"}), Bookmarked{""}).state, At(Watching{"7"}));
}

TEST(WatchStateTest, CleanEndReopensAtOnceFromTheLastVersion) {
  const WatchStep step = Step(At(Watching{"8"}), WatchEnded{How::kClean, kLong});
  EXPECT_EQ(step.state, At(Watching{"8"}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kForgive, Action::kOpenWatch));
}

TEST(WatchStateTest, ServerThatClosesAtOnceEachTimeIsWaitedForFromTheSecondTimeOn) {
  WatchStep step = Step(At(InitListed{"8"}), WatchEnded{How::kClean, kShort});
  EXPECT_THAT(step.actions, ElementsAre(Action::kOpenWatch));
  for (int i = 0; i < 3; ++i) {
    step = Step(step.state, WatchEnded{How::kClean, kShort});
    EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kOpenWatch));
  }
  step = Step(step.state, WatchEnded{How::kClean, kLong});
  EXPECT_THAT(step.actions, ElementsAre(Action::kForgive, Action::kOpenWatch));
  step = Step(step.state, WatchEnded{How::kClean, kShort});
  EXPECT_THAT(step.actions, ElementsAre(Action::kOpenWatch));
}

TEST(WatchStateTest, ExpiredWatchListsAnew) {
  WatchStep step = Step(At(Watching{"8"}), WatchEnded{How::kExpired, kLong});
  EXPECT_EQ(step.state, At(InitPage{}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kForgive, Action::kBeginList, Action::kFetchPage));
  // A storm of 410s must not become one of lists.
  step = Step(At(InitListed{"8"}), WatchEnded{How::kExpired, kShort});
  EXPECT_EQ(step.state, At(InitPage{}));
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kBeginList, Action::kFetchPage));
}

TEST(WatchStateTest, ErrorsWaitAndAreForgivenAfterAWatchThatLasted) {
  WatchStep step = Step(At(Watching{"8"}), WatchEnded{How::kFailed, kShort});
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kOpenWatch));
  step = Step(step.state, WatchEnded{How::kFailed, kLong});
  EXPECT_THAT(step.actions, ElementsAre(Action::kForgive, Action::kWait, Action::kOpenWatch));
}

// Neither waited for nor listed anew, however often: a kind of which there is nothing is silent.
TEST(WatchStateTest, ASilentWatchIsOpenedAnewAtOnceFromTheLastVersion) {
  WatchStep step{.state = At(Watching{"8"})};
  for (int i = 0; i < 3 * kFailuresBeforeRelist; ++i) {
    step = Step(step.state, WatchEnded{How::kSilent, kLong});
    EXPECT_EQ(step.state, At(Watching{"8"}));
    EXPECT_THAT(step.actions, ElementsAre(Action::kForgive, Action::kOpenWatch));
  }
  step = Step(step.state, WatchEnded{How::kSilent, kShort});
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kOpenWatch));
}

TEST(WatchStateTest, VersionThatNeverOpensAWatchIsGivenUp) {
  WatchStep step{.state = At(Watching{"9999999"})};
  for (int i = 0; i < kFailuresBeforeRelist; ++i) {
    step = Step(step.state, WatchEnded{How::kFailed, base::Duration::zero()});
    EXPECT_EQ(PhaseName(step.state), "Watching");
  }
  step = Step(step.state, WatchEnded{How::kFailed, base::Duration::zero()});
  EXPECT_THAT(step.actions, ElementsAre(Action::kWait, Action::kBeginList, Action::kFetchPage));
}

TEST(WatchStateTest, InputsOfAnotherPhaseChangeNothing) {
  const std::vector<WatchState> states = {
      {}, At(InitPage{"a"}), At(InitListed{"1"}), At(Watching{"2"})};
  const std::vector<WatchInput> inputs = {Started{},         PageArrived{"3", ""}, ListFailed{true},
                                          ObjectChanged{""}, ObjectDeleted{""},    Bookmarked{""},
                                          WatchEnded{}};
  // Which inputs count in Empty, InitPage, InitListed, Watching.
  const std::vector<std::vector<bool>> counts = {{true, false, false, false, false, false, false},
                                                 {false, true, true, false, false, false, false},
                                                 {false, false, false, true, true, true, true},
                                                 {false, false, false, true, true, true, true}};
  for (size_t s = 0; s < states.size(); ++s) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const WatchStep step = Step(states[s], inputs[i]);
      if (counts[s][i]) continue;
      EXPECT_EQ(step.state, states[s]) << PhaseName(states[s]) << " input " << i;
      EXPECT_THAT(step.actions, IsEmpty()) << PhaseName(states[s]) << " input " << i;
    }
  }
}

}  // namespace
}  // namespace hetero::kube
