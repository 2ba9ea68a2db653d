#include "operator/reconcile/call_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hetero::reconcile {
namespace {

using std::chrono::milliseconds;

// An API server that answers `at_once` calls at a time, each after `takes`; the others wait in
// line.
struct Server {
  size_t at_once;
  milliseconds takes;

  milliseconds Answers(size_t calls) const { return takes * std::max(calls, at_once) / at_once; }
};

void PassRounds(CallPace& pace, const Server& server, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const size_t calls = pace.at_once();
    for (size_t call = 0; call < calls; ++call) pace.Ended(server.Answers(calls));
  }
}

TEST(CallPaceTest, WhereCallsDoNotWaitForEachOtherThereComeToBeTheMost) {
  CallPace quick({}), slow({});
  PassRounds(quick, {.at_once = 1000, .takes = milliseconds(5)}, 11);
  PassRounds(slow, {.at_once = 1000, .takes = milliseconds(3000)}, 11);
  EXPECT_EQ(quick.at_once(), 50u);
  EXPECT_EQ(slow.at_once(), 50u);  // as at a slow admission webhook
}

TEST(CallPaceTest, AServerThatIsBusyHasAFewCallsInLine) {
  CallPace pace({});
  const Server server{.at_once = 12, .takes = milliseconds(20)};
  PassRounds(pace, server, 100);
  EXPECT_GE(pace.at_once(), 12u) << "the server has time left";
  EXPECT_LE(pace.at_once(), 12u + 4);
}

TEST(CallPaceTest, OneThatComesToBeBusyHasFewerWithinSomeRounds) {
  CallPace pace({});
  PassRounds(pace, {.at_once = 1000, .takes = milliseconds(20)}, 20);
  ASSERT_EQ(pace.at_once(), 50u);
  PassRounds(pace, {.at_once = 2, .takes = milliseconds(40)}, 6);
  EXPECT_LE(pace.at_once(), 10u);
  PassRounds(pace, {.at_once = 1000, .takes = milliseconds(20)}, 12);
  EXPECT_EQ(pace.at_once(), 50u);
}

// A word to a head between the deletions of pods, or a call that was left out.
TEST(CallPaceTest, WhatTookNoTimeWasNoCall) {
  CallPace pace({});
  for (int i = 0; i < 400; ++i) {
    pace.Ended(std::chrono::microseconds(1));
    pace.Ended(milliseconds(3000));
  }
  EXPECT_EQ(pace.at_once(), 50u);
}

TEST(CallPaceTest, OneRoundInWhichNothingIsAnsweredHalvesIt) {
  CallPace pace({});
  PassRounds(pace, {.at_once = 1000, .takes = milliseconds(20)}, 20);
  PassRounds(pace, {.at_once = 1000, .takes = milliseconds(20000)}, 1);
  EXPECT_EQ(pace.at_once(), 25u + 4);
}

TEST(CallPaceTest, ThereAreNeverMoreThanAllowedNorNone) {
  CallPace one({.most = 1}), two({.most = 2});
  EXPECT_EQ(one.at_once(), 1u);
  PassRounds(one, {.at_once = 1, .takes = milliseconds(0)}, 20);
  PassRounds(two, {.at_once = 1, .takes = milliseconds(1)}, 20);
  EXPECT_EQ(one.at_once(), 1u);
  EXPECT_EQ(two.at_once(), 2u);
}

}  // namespace
}  // namespace hetero::reconcile
