#include "operator/kube/leader_election.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/fake_clock.h"
#include "lease_server.h"

namespace hetero::kube {
namespace {

using std::chrono::seconds;

nlohmann::json LeaseOf(const std::string& holder, const std::string& renewed, int transitions = 3) {
  return {{"holderIdentity", holder},
          {"leaseDurationSeconds", 15},
          {"acquireTime", "2026-01-01T00:00:00.000000Z"},
          {"renewTime", renewed},
          {"leaseTransitions", transitions}};
}
const char kJustNow[] = "2026-01-01T00:00:00.000000Z";

class LeaderElectionTest : public ::testing::Test {
 protected:
  LeaderElection::Options Options(const std::string& identity = "me") {
    return {.lease = {"sys", "op"}, .identity = identity};
  }
  std::unique_ptr<LeaderElection> Make(const std::string& identity = "me") {
    return std::make_unique<LeaderElection>(client_, clock_, registry_, Options(identity),
                                            [] { return 0.0; });
  }
  std::future<absl::Status> Acquire(LeaderElection& election) {
    return std::async(std::launch::async,
                      [&election, stop = stop_.get_token()] { return election.Acquire(stop); });
  }
  std::future<absl::Status> Hold(LeaderElection& election) {
    auto held = std::async(std::launch::async,
                           [&election, stop = stop_.get_token()] { return election.Hold(stop); });
    EXPECT_TRUE(clock_.WaitForSleepers(2));  // Hold until its deadline, the worker its period
    return held;
  }
  // One round of the worker, with Hold beside it when `sleepers` is 2.
  void Round(int sleepers) {
    clock_.Advance(seconds(2));
    ASSERT_TRUE(clock_.WaitForSleepers(sleepers));
  }
  double Gauge() {
    return registry_.GetGauge("leader_election_master_status", "", {{"name", "op"}}).value();
  }
  static bool Ready(std::future<absl::Status>& future) {
    return future.wait_for(seconds(0)) == std::future_status::ready;
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  FakeTransport transport_;
  LeaseServer server_{transport_};
  Client client_{transport_, clock_, registry_, {.qps = 0}};
  std::stop_source stop_;
};

TEST_F(LeaderElectionTest, FreeLeaseIsCreated) {
  auto election = Make();
  EXPECT_EQ(Gauge(), 0);
  EXPECT_TRUE(election->Acquire(stop_.get_token()).ok());
  EXPECT_TRUE(election->leading());
  EXPECT_EQ(election->holder(), "me");
  EXPECT_EQ(Gauge(), 1);
  EXPECT_EQ(server_.spec(), LeaseOf("me", kJustNow, 0));
}

TEST_F(LeaderElectionTest, ReleasedLeaseIsTakenAtOnce) {
  server_.Put(LeaseOf("", kJustNow));
  auto election = Make();
  EXPECT_TRUE(election->Acquire(stop_.get_token()).ok());
  EXPECT_EQ(server_.spec(), LeaseOf("me", kJustNow, 4));
}

TEST_F(LeaderElectionTest, OwnLeaseOfAnEarlierRunIsTakenAtOnceAndItsTermGoesOn) {
  clock_.Advance(seconds(7));
  server_.Put(LeaseOf("me", kJustNow));
  auto election = Make();
  EXPECT_TRUE(election->Acquire(stop_.get_token()).ok());
  EXPECT_EQ(server_.spec(), LeaseOf("me", "2026-01-01T00:00:07.000000Z", 3));
}

TEST_F(LeaderElectionTest, HeldLeaseIsTakenOnlyAfterNotChangingForItsDurationHere) {
  // What the other machine's clock says does not matter, either way.
  for (const char* renewed : {"1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"}) {
    server_.Put(LeaseOf("other", renewed));
    auto election = Make();
    auto acquired = Acquire(*election);
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    EXPECT_EQ(election->holder(), "other");
    for (int elapsed = 2; elapsed <= 14; elapsed += 2) {
      Round(1);
      ASSERT_FALSE(Ready(acquired)) << renewed << " after " << elapsed << " s";
    }
    clock_.Advance(seconds(2));
    EXPECT_TRUE(acquired.get().ok());
    EXPECT_EQ(server_.spec()["leaseTransitions"], 4);
    EXPECT_EQ(server_.spec()["holderIdentity"], "me");
  }
}

TEST_F(LeaderElectionTest, HolderThatRenewsKeepsIt) {
  server_.Put(LeaseOf("other", "0"));
  auto election = Make();
  auto acquired = Acquire(*election);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  for (int i = 1; i <= 30; ++i) {
    if (i % 5 == 0) server_.Put(LeaseOf("other", std::to_string(i)));
    Round(1);
    ASSERT_FALSE(Ready(acquired));
  }
  EXPECT_EQ(server_.writes(), 0);
  stop_.request_stop();
  EXPECT_TRUE(absl::IsCancelled(acquired.get()));
  EXPECT_FALSE(election->leading());
}

TEST_F(LeaderElectionTest, OfTwoCandidatesTheSlowerOneWaits) {
  struct Case {
    const char* name;
    bool there_before;
  };
  for (const Case& c : {Case{"both create", false}, Case{"both update", true}}) {
    if (c.there_before) {
      server_.Put(LeaseOf("", kJustNow));
    } else {
      server_.Delete();
    }
    server_.BeforeNextWrite([&] { server_.Put(LeaseOf("other", kJustNow)); });
    auto election = Make();
    auto acquired = Acquire(*election);
    ASSERT_TRUE(clock_.WaitForSleepers(1)) << c.name;
    EXPECT_FALSE(election->leading()) << c.name;
    Round(1);
    EXPECT_FALSE(Ready(acquired)) << c.name;
    EXPECT_EQ(election->holder(), "other") << c.name;
    EXPECT_EQ(server_.spec(), LeaseOf("other", kJustNow)) << c.name;
    for (int i = 0; i < 7; ++i) Round(1);
    clock_.Advance(seconds(2));
    EXPECT_TRUE(acquired.get().ok()) << c.name;
  }
}

TEST_F(LeaderElectionTest, ServerThatCannotBeAskedIsAskedAgain) {
  server_.FailWith(absl::UnavailableError("refused"));
  auto election = Make();
  auto acquired = Acquire(*election);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  Round(1);
  EXPECT_FALSE(Ready(acquired));
  server_.FailWith(absl::OkStatus());
  clock_.Advance(seconds(2));
  EXPECT_TRUE(acquired.get().ok());
}

TEST_F(LeaderElectionTest, RenewsWithOneCallEachPeriod) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  const size_t requests = transport_.requests().size();
  for (int i = 0; i < 20; ++i) Round(2);
  EXPECT_EQ(transport_.requests().size(), requests + 20);
  EXPECT_EQ(server_.spec(), LeaseOf("me", "2026-01-01T00:00:40.000000Z", 0));
  EXPECT_FALSE(Ready(held));
  stop_.request_stop();
  EXPECT_TRUE(held.get().ok());
}

TEST_F(LeaderElectionTest, StopReleasesSoThatTheNextLeadsAtOnce) {
  auto first = Make("first");
  ASSERT_TRUE(first->Acquire(stop_.get_token()).ok());
  auto held = Hold(*first);
  stop_.request_stop();
  EXPECT_TRUE(held.get().ok());
  EXPECT_EQ(server_.spec()["holderIdentity"], "");
  EXPECT_EQ(server_.spec()["leaseDurationSeconds"], 1);
  EXPECT_FALSE(first->leading());
  EXPECT_EQ(Gauge(), 0);
  auto second = Make("second");
  EXPECT_TRUE(second->Acquire({}).ok());
  EXPECT_EQ(server_.spec()["leaseTransitions"], 1);
}

TEST_F(LeaderElectionTest, LostToAnotherHolderIsReportedAtOnce) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  server_.Put(LeaseOf("thief", kJustNow));
  clock_.Advance(seconds(2));
  EXPECT_TRUE(absl::IsAborted(held.get()));
  EXPECT_FALSE(election->leading());
  EXPECT_EQ(Gauge(), 0);
  EXPECT_EQ(server_.spec()["holderIdentity"], "thief");
}

TEST_F(LeaderElectionTest, FreedByOthersIsLostToo) {
  // Somebody may have led in between.
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  server_.Put(LeaseOf("", kJustNow));
  clock_.Advance(seconds(2));
  EXPECT_TRUE(absl::IsAborted(held.get()));
}

TEST_F(LeaderElectionTest, ForeignEditThatKeepsTheHolderCostsOneMoreRead) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  nlohmann::json spec = server_.spec();
  spec["renewTime"] = "2020-01-01T00:00:00.000000Z";
  server_.Put(spec);
  Round(2);
  EXPECT_FALSE(Ready(held));
  EXPECT_EQ(server_.spec(), LeaseOf("me", "2026-01-01T00:00:02.000000Z", 0));
  stop_.request_stop();
  EXPECT_TRUE(held.get().ok());
}

TEST_F(LeaderElectionTest, DeletedLeaseIsMadeAgain) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  server_.Delete();
  Round(2);
  EXPECT_FALSE(Ready(held));
  EXPECT_EQ(server_.spec()["holderIdentity"], "me");
  stop_.request_stop();
  EXPECT_TRUE(held.get().ok());
}

TEST_F(LeaderElectionTest, GivesUpExactlyAtTheRenewDeadline) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  Round(2);
  server_.FailWith(absl::UnavailableError("connection refused"));
  for (int i = 0; i < 4; ++i) Round(2);
  EXPECT_FALSE(Ready(held));
  EXPECT_TRUE(election->leading());
  clock_.Advance(seconds(2));  // 10 s after the last renewal
  EXPECT_TRUE(absl::IsAborted(held.get()));
  EXPECT_FALSE(election->leading());
}

TEST_F(LeaderElectionTest, RecoversWhenTheServerComesBackInTime) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  for (int round = 0; round < 3; ++round) {
    server_.FailWith(absl::UnavailableError("connection refused"));
    for (int i = 0; i < 3; ++i) Round(2);
    server_.FailWith(absl::OkStatus());
    Round(2);
    EXPECT_FALSE(Ready(held));
  }
  stop_.request_stop();
  EXPECT_TRUE(held.get().ok());
}

TEST_F(LeaderElectionTest, RequestWithoutAnswerDoesNotDelayTheDeadline) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  server_.Block();
  clock_.Advance(seconds(2));
  server_.WaitUntilOneIsBlocked();
  EXPECT_FALSE(Ready(held));
  clock_.Advance(seconds(8));
  EXPECT_TRUE(absl::IsAborted(held.get()));
  EXPECT_FALSE(election->leading());
  election.reset();  // without the answer
  EXPECT_EQ(Gauge(), 0);
  EXPECT_EQ(server_.spec()["holderIdentity"], "me");  // not released: writers may still be ending
}

TEST_F(LeaderElectionTest, StopWaitsForTheRenewalUnderWaySoThatItCanRelease) {
  auto election = Make();
  ASSERT_TRUE(election->Acquire(stop_.get_token()).ok());
  auto held = Hold(*election);
  server_.Block();
  clock_.Advance(seconds(2));
  server_.WaitUntilOneIsBlocked();
  stop_.request_stop();
  server_.Unblock();
  EXPECT_TRUE(held.get().ok());
  EXPECT_EQ(server_.spec()["holderIdentity"], "");
}

TEST_F(LeaderElectionTest, EndsWithoutTheAnswerToWhatItAsks) {
  auto leader = Make();
  ASSERT_TRUE(leader->Acquire(stop_.get_token()).ok());
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.Block();
  clock_.Advance(seconds(2));
  server_.WaitUntilOneIsBlocked();
  leader.reset();

  auto candidate = Make("other");
  auto acquired = Acquire(*candidate);
  server_.WaitUntilOneIsBlocked();
  stop_.request_stop();
  EXPECT_TRUE(absl::IsCancelled(acquired.get()));
  candidate.reset();
  EXPECT_EQ(server_.spec(), LeaseOf("me", kJustNow, 0));
}

TEST_F(LeaderElectionTest, LeasesOfAnyShapeAreSurvived) {
  const std::vector<nlohmann::json> specs = {
      nullptr,
      7,
      "text",
      nlohmann::json::array(),
      nlohmann::json::object(),
      {{"holderIdentity", 7}, {"leaseDurationSeconds", "15"}, {"leaseTransitions", -1.5}},
      {{"holderIdentity", nullptr}, {"leaseDurationSeconds", nullptr}, {"acquireTime", {}}}};
  for (const nlohmann::json& spec : specs) {
    server_.Put(spec);
    auto election = Make();
    EXPECT_TRUE(election->Acquire(stop_.get_token()).ok()) << spec;
    EXPECT_EQ(server_.spec()["holderIdentity"], "me") << spec;
  }
}

TEST_F(LeaderElectionTest, HoldWithoutAcquireIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Make()->Hold(stop_.get_token())));
}

}  // namespace
}  // namespace hetero::kube
