#include "operator/controller/controller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_clock.h"

namespace hetero::controller {
namespace {

using Result = Controller::Result;
using std::chrono::seconds;

// Ported in spirit from controller-runtime's pkg/internal/controller/controller_test.go: a
// reconcile whose results the test gives one by one.
class ControllerTest : public ::testing::Test {
 protected:
  ~ControllerTest() override { Stop(); }

  void Start(int workers = 1) {
    controller_.emplace(
        Controller::Options{.name = "jobs", .workers = workers}, clock_, registry_,
        [this](const std::string& key, std::stop_token stop) { return Reconcile(key, stop); });
    runner_ = std::jthread([this] { controller_->Run(stop_.get_token()); });
  }
  void Stop() {
    stop_.request_stop();
    if (runner_.joinable()) runner_.join();
  }

  // The answer to the next reconcile; the default is success.
  void Answer(std::function<absl::StatusOr<Result>()> answer) {
    std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  void AnswerError() {
    Answer([] { return absl::UnavailableError("the API server is away"); });
  }
  absl::StatusOr<Result> Reconcile(const std::string& key, const std::stop_token&) {
    std::function<absl::StatusOr<Result>()> answer = [] { return Result{}; };
    {
      std::lock_guard lock(mutex_);
      if (!answers_.empty()) {
        answer = std::move(answers_.front());
        answers_.pop_front();
      }
      seen_.push_back(key);
    }
    changed_.notify_all();
    return answer();
  }
  // Until `count` reconciles have ended, by what the metrics say.
  void WaitForReconciles(int count) {
    while (Total("success") + Total("error") + Total("requeue") + Total("requeue_after") < count) {
      std::this_thread::yield();
    }
  }
  double Total(const std::string& result) {
    return registry_
        .GetCounter("controller_runtime_reconcile_total", "",
                    {{"controller", "jobs"}, {"result", result}})
        .value();
  }
  double Count(const std::string& name) {
    return registry_.GetCounter(name, "", {{"controller", "jobs"}}).value();
  }
  double Level(const std::string& name) {
    return registry_.GetGauge(name, "", {{"controller", "jobs"}}).value();
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  std::mutex mutex_;  // guards answers_ and seen_
  std::condition_variable changed_;
  std::deque<std::function<absl::StatusOr<Result>()>> answers_;
  std::vector<std::string> seen_;
  std::optional<Controller> controller_;
  std::stop_source stop_;
  std::jthread runner_;
};

TEST_F(ControllerTest, SuccessIsForgottenAndNotRepeated) {
  Start();
  controller_->queue().Add("ns/a");
  WaitForReconciles(1);
  Stop();
  EXPECT_EQ(seen_, std::vector<std::string>{"ns/a"});
  EXPECT_EQ(Total("success"), 1);
  EXPECT_EQ(controller_->queue().Failures("ns/a"), 0);
  EXPECT_EQ(controller_->queue().depth(), 0u);
}

TEST_F(ControllerTest, AnErrorComesBackWithTheRateLimitUntilItSucceeds) {
  AnswerError();
  AnswerError();
  Start();
  controller_->queue().Add("ns/a");
  WaitForReconciles(1);
  EXPECT_EQ(Total("error"), 1);
  for (int done = 1; done < 3; ++done) {
    while (Total("error") + Total("success") == done) {
      clock_.Advance(std::chrono::milliseconds(1));
      std::this_thread::yield();
    }
  }
  Stop();
  EXPECT_EQ(Total("error"), 2);
  EXPECT_EQ(Total("success"), 1);
  EXPECT_EQ(Count("controller_runtime_reconcile_errors_total"), 2);
  EXPECT_EQ(Count("controller_runtime_reconcile_panics_total"), 0);
  EXPECT_EQ(controller_->queue().Failures("ns/a"), 0);
}

TEST_F(ControllerTest, RequeueAfterForgivesAndComesBackThen) {
  AnswerError();
  Answer([] { return Result{.requeue_after = seconds(30)}; });
  Start();
  WorkQueue& queue = controller_->queue();
  queue.Add("ns/a");
  WaitForReconciles(1);
  while (Total("requeue_after") == 0) {
    clock_.Advance(std::chrono::milliseconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(queue.Failures("ns/a"), 0);
  EXPECT_EQ(Total("success"), 0);
  while (Total("success") == 0) {
    clock_.Advance(seconds(1));
    std::this_thread::yield();
  }
  Stop();
  EXPECT_EQ(seen_.size(), 3u);
}

TEST_F(ControllerTest, RequeueAtOnceIsRateLimited) {
  Answer([] { return Result{.requeue_after = seconds(0)}; });
  Answer([] { return Result{.requeue_after = seconds(-5)}; });
  Start();
  controller_->queue().Add("ns/a");
  WaitForReconciles(1);
  EXPECT_EQ(Total("requeue"), 1);
  while (Total("success") == 0) {
    clock_.Advance(std::chrono::milliseconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(Total("requeue"), 2);
}

TEST_F(ControllerTest, AnExceptionIsAnErrorOfThatKeyOnly) {
  Answer([]() -> absl::StatusOr<Result> { throw std::out_of_range("no such role"); });
  Answer([]() -> absl::StatusOr<Result> { throw 7; });
  Start();
  controller_->queue().Add("ns/a");
  controller_->queue().Add("ns/b");
  controller_->queue().Add("ns/c");
  WaitForReconciles(3);
  EXPECT_EQ(Count("controller_runtime_reconcile_panics_total"), 2);
  EXPECT_EQ(Total("error"), 2);
  EXPECT_EQ(Total("success"), 1);
  while (Total("success") < 3) {
    clock_.Advance(std::chrono::milliseconds(1));
    std::this_thread::yield();
  }
  Stop();
  EXPECT_EQ(Level("controller_runtime_active_workers"), 0);
}

TEST_F(ControllerTest, DifferentKeysRunAtOnceUpToTheWorkers) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool open = false;
  for (int i = 0; i < 4; ++i) {
    Answer([&] {
      std::unique_lock lock(mutex);
      ++inside;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
      return Result{};
    });
  }
  Start(4);
  EXPECT_EQ(Level("controller_runtime_max_concurrent_reconciles"), 4);
  for (const char* key : {"a", "b", "c", "d", "e"}) controller_->queue().Add(key);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside == 4; });
    EXPECT_EQ(controller_->queue().depth(), 1u);
    EXPECT_EQ(Level("controller_runtime_active_workers"), 4);
    open = true;
  }
  changed.notify_all();
  WaitForReconciles(5);
}

TEST_F(ControllerTest, StopWaitsForTheRunningAndStartsNoOther) {
  std::atomic<bool> inside = false;
  std::atomic<bool> finish = false;
  Answer([&] {
    inside = true;
    while (!finish) std::this_thread::yield();
    return Result{};
  });
  Start();
  controller_->queue().Add("ns/a");
  controller_->queue().Add("ns/b");
  while (!inside) std::this_thread::yield();
  stop_.request_stop();
  EXPECT_TRUE(runner_.joinable());
  EXPECT_EQ(Total("success"), 0);
  finish = true;
  Stop();
  EXPECT_EQ(seen_, std::vector<std::string>{"ns/a"});
  EXPECT_EQ(Total("success"), 1);
}

TEST_F(ControllerTest, ReconcileSeesTheStop) {
  std::stop_token given;
  std::atomic<bool> inside = false;
  controller_.emplace(Controller::Options{.name = "jobs", .workers = 1}, clock_, registry_,
                      [&](const std::string&, std::stop_token stop) -> absl::StatusOr<Result> {
                        inside = true;
                        while (!stop.stop_requested()) std::this_thread::yield();
                        return absl::CancelledError("stopped");
                      });
  controller_->queue().Add("ns/a");
  runner_ = std::jthread([this] { controller_->Run(stop_.get_token()); });
  while (!inside) std::this_thread::yield();
  Stop();
  EXPECT_EQ(Total("error"), 1);
}

// All of one namespace, which may have half of the workers; passes of eight of its jobs hang.
TEST(ControllerOfGroupsTest, JobsThatHangLeaveWorkersForOthersOfTheirNamespace) {
  base::FakeClock clock;
  metrics::Registry registry;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool go_on = false, quick = false;
  int hang = 0;
  std::map<std::string, int> passes;
  Controller controller(
      {.name = "jobs", .workers = 16, .group_of = [](const std::string&) { return "ns"; }}, clock,
      registry, [&](const std::string& key, const std::stop_token&) -> absl::StatusOr<Result> {
        std::unique_lock lock(mutex);
        const bool first = ++passes[key] == 1;
        if (key == "quick") {
          quick = true;
        } else if (first) {
          clock.Advance(Controller::kLongPass);
        } else {
          ++hang;
        }
        changed.notify_all();
        if (key != "quick" && !first) changed.wait(lock, [&] { return go_on; });
        return Result{};
      });
  std::stop_source stop;
  std::jthread runner([&] { controller.Run(stop.get_token()); });
  const auto await = [&](const std::function<bool()>& come) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, seconds(60), come);
  };
  const auto reconciled = [&] {
    return registry
        .GetCounter("controller_runtime_reconcile_total", "",
                    {{"controller", "jobs"}, {"result", "success"}})
        .value();
  };
  for (int i = 0; i < 8; ++i) {
    controller.queue().Add("slow" + std::to_string(i));
    while (reconciled() <= i) std::this_thread::yield();
  }
  for (int i = 0; i < 8; ++i) controller.queue().Add("slow" + std::to_string(i));
  EXPECT_TRUE(await([&] { return hang == 4; }));
  controller.queue().Add("quick");
  EXPECT_TRUE(await([&] { return quick; }));
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(hang, 4);
    go_on = true;
    changed.notify_all();
  }
  stop.request_stop();
  runner.join();
}

}  // namespace
}  // namespace hetero::controller
