#include "operator/reconcile/head_follower.h"

#include <gtest/gtest.h>

#include <memory>

#include "operator/plan/disruption.h"
#include "tests/unit/operator/reconcile/head_follower_fixture.h"

namespace hetero::reconcile {
namespace {

using State = plan::HeadReport::State;

TEST_F(HeadFollowerTest, AHeadThatWasReplacedHasNoSay) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.incarnation = 7;
  v1::JobStatus word = In(v1::JobStatus::RUNNING, 3);
  word.set_head_incarnation(7);
  server.Say(word);
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  word.set_state(v1::JobStatus::FAILED);
  word.set_head_incarnation(6);
  server.Say(word);
  word.set_state(v1::JobStatus::WAITING);
  word.set_head_incarnation(7);
  base::Clock::Real().SleepFor(std::chrono::milliseconds(300));
  EXPECT_EQ(follower_->Report("a/x")->state, State::kRunning);
  server.Say(word);
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, AHeadWithNothingToSayIsHeardAndWakesNobody) {
  StatusServer server;
  server.Say(In(v1::JobStatus::RUNNING, 3));
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  const base::WallTime before = follower_->Report("a/x")->silent_since;
  // Nothing else was underway when the count has stood still.
  base::Clock::Real().SleepFor(std::chrono::milliseconds(300));
  const int count = announcements_.Count("a/x");
  v1::JobStatus unchanged = In(v1::JobStatus::RUNNING, 3);
  unchanged.set_unchanged(true);
  server.Say(unchanged);
  EXPECT_TRUE(
      announcements_.WaitFor([&] { return follower_->Report("a/x")->silent_since > before; }));
  EXPECT_EQ(announcements_.Count("a/x"), count);
}

TEST_F(HeadFollowerTest, HearsAHeadAndForgetsIt) {
  StatusServer server;
  EXPECT_EQ(follower_->Report("a/x"), std::nullopt);
  follower_->Follow("a/x", Target(server));
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  server.Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  EXPECT_EQ(follower_->streams(), 1u);
  follower_->Follow("a/x", std::nullopt);
  EXPECT_EQ(follower_->Report("a/x"), std::nullopt);
  EXPECT_EQ(follower_->streams(), 0u);
}

TEST_F(HeadFollowerTest, HearsAHeadOfAnIpv6Cluster) {
  StatusServer server(grpc::InsecureServerCredentials(), 0, "[::1]");
  if (!server.listens()) GTEST_SKIP() << "this machine has no ::1: IPv6 is NOT TESTED";
  follower_->Follow("a/x", Target(server));
  EXPECT_TRUE(WaitForState("a/x", State::kWaiting));
}

TEST_F(HeadFollowerTest, ProgressIsNotAnnouncedWithEveryMessage) {
  StatusServer server;
  follower_->Follow("a/x", Target(server));
  server.Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  const auto begin = std::chrono::steady_clock::now();
  const int before = announcements_.Count("a/x");
  for (int step = 1; step <= 300; ++step) {
    server.Say(In(v1::JobStatus::RUNNING, step));
    ASSERT_TRUE(announcements_.WaitFor([&] { return true; }));
  }
  ASSERT_TRUE(announcements_.WaitFor([&] {
    const auto report = follower_->Report("a/x");
    return report->progress && report->progress->step == 300;
  }));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(announcements_.Count("a/x") - before, took / std::chrono::milliseconds(200) + 2);
  ASSERT_TRUE(announcements_.WaitFor([&] { return announcements_.Count("a/x") > before; }));
}

TEST_F(HeadFollowerTest, ReportsAnExit) {
  StatusServer server;
  plan::ReportExit exit;
  exit.role = "gpu";
  exit.index = 3;
  exit.exit_code = 137;
  exit.replaced = true;
  follower_->ReportExit("a/x", exit);  // nobody to tell: nothing happens
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  follower_->ReportExit("a/x", exit);
  ASSERT_TRUE(announcements_.WaitFor([&] { return server.exits().size() == 1; }));
  EXPECT_EQ(server.exits()[0].role(), "gpu");
  EXPECT_EQ(server.exits()[0].index(), 3);
  EXPECT_EQ(server.exits()[0].exit_code(), 137);
  EXPECT_TRUE(server.exits()[0].replaced());
}

TEST_F(HeadFollowerTest, AHeadIsToldWhyItsJobHasFailed) {
  StatusServer server;
  const plan::StopHead end{.failure = "DeadlineExceeded", .reason = "it has run for 60 s"};
  follower_->Stop("a/x", end);  // nobody to tell: nothing happens
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  EXPECT_FALSE(follower_->Report("a/x")->told_to_end);
  follower_->Stop("a/x", end);
  ASSERT_TRUE(announcements_.WaitFor([&] { return follower_->Report("a/x")->told_to_end; }));
  ASSERT_EQ(server.stops().size(), 1u);
  EXPECT_EQ(server.stops()[0].failure(), "DeadlineExceeded");
  EXPECT_EQ(server.stops()[0].reason(), "it has run for 60 s");
}

TEST_F(HeadFollowerTest, AHeadIsToldWhichMembersAreAboutToGo) {
  StatusServer server;
  const plan::WarnHead warn{.notices = {{.role = "gpu",
                                         .index = 1,
                                         .incarnation = 7,
                                         .sign = "node a: it was cordoned",
                                         .may_stay = true}}};
  follower_->Warn("a/x", warn);  // nobody to tell: nothing happens
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  EXPECT_FALSE(follower_->Report("a/x")->warned.has_value());
  follower_->Warn("a/x", warn);
  EXPECT_EQ(follower_->Report("a/x")->warned->notices, warn.notices);
  ASSERT_TRUE(announcements_.WaitFor([&] { return server.warnings().size() == 1; }));
  const v1::Notices sent = server.warnings()[0];
  EXPECT_EQ(sent.notices(0).role(), "gpu");
  EXPECT_EQ(sent.notices(0).index(), 1);
  EXPECT_EQ(sent.notices(0).incarnation(), 7);
  EXPECT_EQ(sent.notices(0).sign(), "node a: it was cordoned");
  EXPECT_TRUE(sent.notices(0).may_stay());
  v1::JobStatus status = In(v1::JobStatus::WAITING);
  status.set_notices_fingerprint(sent.fingerprint());
  server.Say(status);
  ASSERT_TRUE(announcements_.WaitFor([&] {
    return follower_->Report("a/x")->notices_fingerprint == plan::FingerprintOf(warn.notices);
  }));
  plan::HeadTarget another = Target(server);
  another.pod_uid = "pod-2";
  follower_->Follow("a/x", another);
  EXPECT_FALSE(follower_->Report("a/x")->warned.has_value()) << "that head knows nothing of it";
}

TEST_F(HeadFollowerTest, DialsAHeadThatWentAndCameBack) {
  auto server = std::make_unique<StatusServer>();
  const plan::HeadTarget target = Target(*server);
  const int port = server->port();
  server->Say(In(v1::JobStatus::RUNNING, 4));
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  server.reset();
  ASSERT_TRUE(announcements_.WaitFor([&] { return !follower_->Report("a/x")->connected; }));
  EXPECT_EQ(follower_->Report("a/x")->state, State::kRunning) << "its last words still count";
  server = std::make_unique<StatusServer>(grpc::InsecureServerCredentials(), port);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
}

// Each dial costs milliseconds of certificates, and a thousand jobs may end together.
TEST_F(HeadFollowerTest, AHeadThatHasSaidTheEndIsNotDialledAgain) {
  auto server = std::make_unique<StatusServer>();
  const plan::HeadTarget target = Target(*server);
  const int port = server->port();
  server->Say(In(v1::JobStatus::SUCCEEDED, 7));
  follower_->Follow("a/ended", target);
  ASSERT_TRUE(WaitForState("a/ended", State::kSucceeded));
  server.reset();
  ASSERT_TRUE(announcements_.WaitFor([&] { return !follower_->Report("a/ended")->connected; }));
  // Another that waits for its head finds it there.
  follower_->Follow("a/runs", target);
  server = std::make_unique<StatusServer>(grpc::InsecureServerCredentials(), port);
  ASSERT_TRUE(WaitForState("a/runs", State::kWaiting));
  EXPECT_EQ(follower_->Report("a/ended")->state, State::kSucceeded);
  EXPECT_FALSE(follower_->Report("a/ended")->connected);
  EXPECT_EQ(follower_->Report("a/ended")->progress->step, 7);
}

TEST_F(HeadFollowerTest, AnotherHeadOfTheSameRunTakesOverAndAnotherRunBeginsAnew) {
  StatusServer first, second;
  first.Say(In(v1::JobStatus::RUNNING, 4));
  second.Say(In(v1::JobStatus::RUNNING, 5));
  plan::HeadTarget target = Target(first);
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  target.address = second.address();
  target.pod_uid = "pod-2";
  follower_->Follow("a/x", target);
  EXPECT_EQ(follower_->Report("a/x")->progress->step, 4);
  ASSERT_TRUE(
      announcements_.WaitFor([&] { return follower_->Report("a/x")->progress->step == 5; }));
  target.attempt = 2;
  follower_->Follow("a/x", target);
  const auto report = follower_->Report("a/x");
  EXPECT_EQ(report->attempt, 2);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
}

TEST_F(HeadFollowerTest, TwoHundredStreamsEndWithTheFollower) {
  StatusServer server;
  server.Say(In(v1::JobStatus::RUNNING, 1));
  for (int i = 0; i < 200; ++i) follower_->Follow("a/" + std::to_string(i), Target(server));
  ASSERT_TRUE(announcements_.WaitFor([&] {
    int connected = 0;
    for (int i = 0; i < 200; ++i) {
      connected += follower_->Report("a/" + std::to_string(i))->connected;
    }
    return connected == 200;
  }));
  EXPECT_EQ(follower_->streams(), 200u);
  follower_.reset();
  int at_end = announcements_.Count("a/7");
  server.Say(In(v1::JobStatus::SUCCEEDED, 2));
  EXPECT_EQ(announcements_.Count("a/7"), at_end);
}

TEST_F(HeadFollowerTest, EndsWhileItDials) {
  StatusServer server;
  const plan::HeadTarget nobody = {.address = "127.0.0.1:1", .job_uid = "job-1"};
  for (int i = 0; i < 100; ++i) {
    follower_->Follow("a/" + std::to_string(i), i % 2 == 0 ? nobody : Target(server));
  }
  follower_.reset();
}

}  // namespace
}  // namespace hetero::reconcile
