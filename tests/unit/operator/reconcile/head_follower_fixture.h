#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "operator/reconcile/head_follower.h"
#include "tests/unit/operator/reconcile/status_server.h"

namespace hetero::reconcile {

constexpr auto kLimit = std::chrono::seconds(20);

// Counts what the follower announces, and waits for what a test expects.
class Announcements {
 public:
  HeadFollower::Changed Listener() {
    return [this](const std::string& key) {
      const std::lock_guard lock(mutex_);
      ++counts_[key];
      changed_.notify_all();
    };
  }
  int Count(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return counts_[key];
  }
  // Looks again with every announcement and every 10 ms.
  bool WaitFor(const std::function<bool()>& expected) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!expected()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    return true;
  }

 private:
  std::mutex mutex_;  // guards counts_
  std::condition_variable changed_;
  std::map<std::string, int> counts_;
};

inline v1::JobStatus In(v1::JobStatus::State state, int64_t step = 0) {
  v1::JobStatus status;
  status.set_state(state);
  status.mutable_progress()->set_step(step);
  status.mutable_progress()->set_total_steps(1000);
  return status;
}

// A follower of heads that the test plays.
class HeadFollowerTest : public ::testing::Test {
 protected:
  HeadFollowerTest()
      : identity_(*IssueOperatorIdentity(base::Clock::Real().WallNow())),
        follower_(std::make_unique<HeadFollower>(base::Clock::Real(), identity_,
                                                 announcements_.Listener())) {}

  plan::HeadTarget Target(const StatusServer& server) {
    return {.address = server.address(), .job_uid = "job-1", .attempt = 1, .pod_uid = "pod-1"};
  }
  bool WaitForState(const std::string& key, plan::HeadReport::State state) {
    return announcements_.WaitFor([&] {
      const auto report = follower_->Report(key);
      return report && report->connected && report->state == state;
    });
  }

  OperatorIdentity identity_;
  Announcements announcements_;
  std::unique_ptr<HeadFollower> follower_;
};

}  // namespace hetero::reconcile
