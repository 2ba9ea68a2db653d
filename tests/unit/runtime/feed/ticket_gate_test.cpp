// What a CPU worker takes up of what it is asked for, and when.
#include "runtime/feed/ticket_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hetero::feed {
namespace {

std::vector<TicketGate::Key> TakeAll(TicketGate* gate) {
  std::vector<TicketGate::Key> taken;
  while (const auto next = gate->Next()) taken.push_back(*next);
  return taken;
}

using Keys = std::vector<TicketGate::Key>;

TEST(TicketGateTest, WhileThereIsRoomAllComeAtOnceAndInOrder) {
  TicketGate gate(TicketGate::kNoLimit);
  Keys asked, taken;
  for (TicketGate::Key key = 1; key <= 1000; ++key) {
    gate.Ask(/*owner=*/key % 3, key, 1 << 30);
    asked.push_back(key);
    while (const auto next = gate.Next()) taken.push_back(*next);
  }
  EXPECT_EQ(taken, asked);
}

TEST(TicketGateTest, WhatDoesNotFitWaitsForWhatIsSent) {
  TicketGate gate(160);
  for (TicketGate::Key key = 1; key <= 5; ++key) gate.Ask(7, key, 40);
  EXPECT_EQ(TakeAll(&gate), (Keys{1, 2, 3, 4}));
  gate.Release(7, 40);
  EXPECT_EQ(TakeAll(&gate), Keys{5});
  EXPECT_EQ(gate.held(), 160);
}

// One that had to leave a quarter free would make one batch at a time, though there is room for
// two.
TEST(TicketGateTest, AllOfItIsForATrainerThatIsAlone) {
  TicketGate gate(100);
  gate.Join();
  for (TicketGate::Key key = 1; key <= 3; ++key) gate.Ask(7, key, 45);
  EXPECT_EQ(TakeAll(&gate), (Keys{1, 2}));
  gate.Join();
  gate.Release(7, 45);
  EXPECT_EQ(TakeAll(&gate), Keys{});
  gate.Part();
  EXPECT_EQ(TakeAll(&gate), Keys{3});
}

TEST(TicketGateTest, AQuarterIsForThoseWhoHoldNothing) {
  TicketGate gate(8);
  gate.Join();
  gate.Join();
  for (TicketGate::Key key = 1; key <= 20; ++key) gate.Ask(7, key, 1);
  EXPECT_EQ(TakeAll(&gate), (Keys{1, 2, 3, 4, 5, 6}));
  gate.Ask(8, 21, 1);
  gate.Ask(8, 22, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{21});
  gate.Release(8, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{22});
}

TEST(TicketGateTest, OneIsTakenUpHoweverLargeItIs) {
  TicketGate gate(100);
  gate.Ask(7, 1, 1000);
  gate.Ask(7, 2, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{1});
  gate.Release(7, 1000);
  EXPECT_EQ(TakeAll(&gate), Keys{2});
}

TEST(TicketGateTest, WhoHoldsLeastComesFirstAndOfSeveralWhoHasWaitedLongest) {
  TicketGate gate(2);
  for (TicketGate::Key key = 1; key <= 4; ++key) gate.Ask(7, key, 1);
  gate.Ask(8, 5, 1);
  gate.Ask(9, 6, 1);
  EXPECT_EQ(TakeAll(&gate), (Keys{1, 5}));
  gate.Release(8, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{6});  // 7 holds one
  gate.Release(7, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{2});
}

TEST(TicketGateTest, WhatIsNoLongerAskedForHasNoTurn) {
  TicketGate gate(1);
  for (TicketGate::Key key = 1; key <= 3; ++key) gate.Ask(7, key, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{1});
  EXPECT_FALSE(gate.Withdraw(7, 1));
  EXPECT_FALSE(gate.Withdraw(8, 2));
  EXPECT_TRUE(gate.Withdraw(7, 2));
  gate.Release(7, 1);
  EXPECT_EQ(TakeAll(&gate), Keys{3});
}

// 256 trainers ask for two batches each, the worker has room for 26; each batch is sent in turn.
TEST(TicketGateTest, AllHaveTheirTurnHoweverManyTheyAre) {
  constexpr TicketGate::Owner kTrainers = 256;
  constexpr int64_t kBatch = 38'500'000;
  TicketGate gate(int64_t{1} << 30);
  auto ask = [&, key = TicketGate::Key{0}](TicketGate::Owner owner) mutable {
    gate.Ask(owner, key++ * kTrainers + owner, kBatch);
  };
  for (int i = 0; i < 2; ++i) {
    for (TicketGate::Owner owner = 0; owner < kTrainers; ++owner) ask(owner);
  }
  std::vector<int64_t> served(kTrainers);
  std::vector<TicketGate::Owner> sending;
  for (int64_t i = 0; i < 100 * static_cast<int64_t>(kTrainers); ++i) {
    while (const auto next = gate.Next()) sending.push_back(*next % kTrainers);
    ASSERT_LE(gate.held(), int64_t{1} << 30);
    ASSERT_FALSE(sending.empty());
    const TicketGate::Owner done = sending.front();
    sending.erase(sending.begin());
    ++served[done];
    gate.Release(done, kBatch);
    ask(done);
  }
  const auto [least, most] = std::minmax_element(served.begin(), served.end());
  EXPECT_LE(*most - *least, 1);
}

}  // namespace
}  // namespace hetero::feed
