// Heads that say more than they should: nobody else is held up, and the operator's memory is safe.
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tests/unit/operator/reconcile/head_follower_fixture.h"

namespace hetero::reconcile {
namespace {

using State = plan::HeadReport::State;

// The machine's clock, but whoever asks for the time of day next, after Hold(), waits until
// Release(): what is known of one head is dated under that head's lock.
class HoldingClock : public base::Clock {
 public:
  base::Instant Now() const override { return Real().Now(); }
  base::WallTime WallNow() const override {
    std::unique_lock lock(mutex_);
    if (std::exchange(hold_, false)) {
      holds_ = true;
      changed_.notify_all();
      released_in_time_ = changed_.wait_for(lock, kLimit, [this] { return !holds_; });
    }
    return Real().WallNow();
  }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    return Real().SleepFor(duration, std::move(stop));
  }

  void Hold() {
    const std::lock_guard lock(mutex_);
    hold_ = true;
  }
  bool WaitUntilHeld() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [this] { return holds_; });
  }
  // False: whoever waited had given up.
  bool Release() {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    changed_.notify_all();
    return released_in_time_;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  mutable bool hold_ = false, holds_ = false, released_in_time_ = true;
};

v1::JobStatus OfBytes(size_t bytes) {
  v1::JobStatus status = In(v1::JobStatus::RUNNING);
  status.set_verdict(std::string(bytes, 'x'));
  return status;
}

// The head's image is the user's, and gRPC takes 4 MiB by default.
TEST_F(HeadFollowerTest, AStatusLargerThanTheJobCanHaveIsNotTakenIn) {
  StatusServer server, neighbour;
  server.Say(OfBytes(100'000));
  neighbour.Say(OfBytes(60'000));
  follower_->Follow("a/hostile", Target(server));
  follower_->Follow("a/neighbour", Target(neighbour));
  ASSERT_TRUE(WaitForState("a/neighbour", State::kRunning));
  EXPECT_EQ(follower_->Report("a/hostile")->state, State::kUnknown);
  server.Say(OfBytes(10));
  EXPECT_TRUE(WaitForState("a/hostile", State::kRunning)) << "it is dialled again";
}

TEST_F(HeadFollowerTest, AJobThatGrowsMaySayMore) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.replicas = {{"cpu", 1}};
  target.processes = 1;
  server.Say(In(v1::JobStatus::WAITING));
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  target.replicas = {{"cpu", 1000}};
  target.processes = 1000;
  follower_->Follow("a/x", target);
  v1::JobStatus status = OfBytes(100'000);
  v1::MemberStatus* member = status.add_members();
  member->set_role("cpu");
  member->set_index(999);
  server.Say(status);
  ASSERT_TRUE(WaitForState("a/x", State::kRunning));
  EXPECT_EQ(follower_->Report("a/x")->members.count("cpu-999"), 1u);
}

TEST_F(HeadFollowerTest, AJobThatShrinksKeepsItsStream) {
  StatusServer server;
  plan::HeadTarget target = Target(server);
  target.replicas = {{"cpu", 1000}};
  target.processes = 1000;
  follower_->Follow("a/x", target);
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  target.replicas = {{"cpu", 1}};
  target.processes = 1;
  follower_->Follow("a/x", target);
  EXPECT_TRUE(follower_->Report("a/x")->connected);
}

// Back-pressure: the stream stays, the head waits, and what it says last is heard.
TEST_F(HeadFollowerTest, AHeadThatTalksAllTheTimeIsReadAtAPaceAndKept) {
  StatusServer server;
  follower_->Follow("a/x", Target(server));
  ASSERT_TRUE(WaitForState("a/x", State::kWaiting));
  // Three of these take up what may be read at once.
  for (int step = 1; step <= 6; ++step) {
    v1::JobStatus status = OfBytes(60'000);
    status.mutable_progress()->set_step(step);
    status.mutable_progress()->set_total_steps(6);
    server.Say(std::move(status));
  }
  ASSERT_TRUE(announcements_.WaitFor([&] {
    const auto report = follower_->Report("a/x");
    return report->progress && report->progress->step == 6;
  }));
  EXPECT_TRUE(follower_->Report("a/x")->connected);
  follower_.reset();  // also while a read waits
}

// A status of ten thousand members takes a while to take in, and a loud head says one after the
// other. Other jobs' workers and heads all once waited for that.
TEST_F(HeadFollowerTest, AHeadWhoseStatusTakesLongHoldsUpNoOtherJob) {
  HoldingClock clock;
  follower_ = std::make_unique<HeadFollower>(clock, identity_, announcements_.Listener());
  StatusServer large, other, third;
  follower_->Follow("team/large", Target(large));
  follower_->Follow("team/other", Target(other));
  for (StatusServer* server : {&large, &other}) server->Say(In(v1::JobStatus::RUNNING));
  ASSERT_TRUE(WaitForState("team/large", State::kRunning));
  ASSERT_TRUE(WaitForState("team/other", State::kRunning));

  clock.Hold();
  large.Say(In(v1::JobStatus::SUCCEEDED, 1000));
  ASSERT_TRUE(clock.WaitUntilHeld());
  other.Say(In(v1::JobStatus::FAILED, 7));
  EXPECT_TRUE(WaitForState("team/other", State::kFailed));
  third.Say(In(v1::JobStatus::RUNNING));
  follower_->Follow("team/third", Target(third));
  EXPECT_TRUE(WaitForState("team/third", State::kRunning));
  follower_->ReportExit("team/third", {.role = "gpu", .index = 1});
  EXPECT_TRUE(announcements_.WaitFor([&] { return third.exits().size() == 1; }));

  EXPECT_TRUE(clock.Release());
  EXPECT_TRUE(WaitForState("team/large", State::kSucceeded));
  follower_.reset();  // before its clock
}

}  // namespace
}  // namespace hetero::reconcile
