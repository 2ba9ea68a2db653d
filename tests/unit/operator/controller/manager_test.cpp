#include "operator/controller/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/fake_clock.h"

namespace hetero::controller {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What happened, in order. Safe from any thread.
class Record {
 public:
  void Add(std::string what) {
    std::lock_guard lock(mutex_);
    what_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::vector<std::string> All() {
    std::lock_guard lock(mutex_);
    return what_;
  }
  void WaitFor(const std::string& what) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ranges::find(what_, what) != what_.end(); });
  }

 private:
  std::mutex mutex_;  // guards what_
  std::condition_variable changed_;
  std::vector<std::string> what_;
};

void WaitForStop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

class ManagerTest : public ::testing::Test {
 protected:
  Manager::Run Recorded(const std::string& name) {
    return [this, name](std::stop_token stop) {
      record_.Add(name + " starts");
      WaitForStop(stop);
      record_.Add(name + " stops");
    };
  }
  void AddCache(const std::string& name) {
    manager_->AddCache(name, Recorded(name), [this] { return synced_.load(); });
  }
  void AddWorker(const std::string& name) { manager_->AddWorker(name, Recorded(name)); }
  void SetElection() {
    manager_->SetElection(
        [this](std::stop_token) {
          record_.Add("acquired");
          return absl::OkStatus();
        },
        [this](std::stop_token stop) {
          std::stop_source either;
          const std::stop_callback stopped(stop, [&] { either.request_stop(); });
          const std::stop_callback lost(lose_lease_.get_token(), [&] { either.request_stop(); });
          WaitForStop(either.get_token());
          record_.Add(stop.stop_requested() ? "released" : "lost");
          return stop.stop_requested() ? absl::OkStatus() : absl::AbortedError("lease lost");
        });
  }
  void Start() {
    result_ = std::async(std::launch::async, [this] { return manager_->Start(stop_.get_token()); });
  }
  // Moves time on, a second at a go, until Start() has returned.
  absl::Status AdvanceUntilEnd() {
    while (result_.wait_for(seconds(0)) != std::future_status::ready) {
      if (clock_.WaitForSleepers(1, std::chrono::milliseconds(100))) clock_.Advance(seconds(1));
    }
    return result_.get();
  }

  base::FakeClock clock_;
  Record record_;
  std::atomic<bool> synced_ = true;
  std::stop_source stop_;
  std::stop_source lose_lease_;
  std::future<absl::Status> result_;
  std::optional<Manager> manager_{std::in_place, clock_, Manager::Options{}};
};

TEST_F(ManagerTest, StartsInOrderAndStopsInReverse) {
  AddWorker("worker");  // the order of the calls does not matter
  SetElection();
  AddCache("cache");
  synced_ = false;
  Start();
  record_.WaitFor("cache starts");
  EXPECT_EQ(manager_->Ready().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(manager_->Ready().message(), HasSubstr("cache"));
  EXPECT_THAT(record_.All(), ElementsAre("cache starts"));

  synced_ = true;
  while (record_.All().size() < 2) {
    if (clock_.WaitForSleepers(1, std::chrono::milliseconds(1))) clock_.Advance(seconds(1));
  }
  record_.WaitFor("worker starts");
  EXPECT_TRUE(manager_->Ready().ok());

  stop_.request_stop();
  EXPECT_TRUE(result_.get().ok());
  EXPECT_THAT(record_.All(), ElementsAre("cache starts", "acquired", "worker starts",
                                         "worker stops", "released", "cache stops"));
}

TEST_F(ManagerTest, ReadyWithoutLeading) {
  AddCache("cache");
  manager_->SetElection(
      [this](std::stop_token stop) {
        record_.Add("waits");
        WaitForStop(stop);
        return absl::CancelledError("stopped");
      },
      [](std::stop_token) { return absl::OkStatus(); });
  AddWorker("worker");
  Start();
  record_.WaitFor("waits");
  EXPECT_TRUE(manager_->Ready().ok());
  stop_.request_stop();
  EXPECT_TRUE(result_.get().ok());
  manager_.reset();
  EXPECT_THAT(record_.All(), ::testing::Not(::testing::Contains("worker starts")));
}

TEST_F(ManagerTest, ACacheThatNeverSyncsIsNamed) {
  manager_->AddCache("pods", Recorded("pods"), [] { return true; });
  manager_->AddCache("nodes", Recorded("nodes"), [] { return false; });
  AddWorker("worker");
  Start();
  const absl::Status status = AdvanceUntilEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("120 s: nodes;"));
  record_.WaitFor("pods stops");
  record_.WaitFor("nodes stops");
  EXPECT_THAT(record_.All(), ::testing::Not(::testing::Contains("worker starts")));
}

TEST_F(ManagerTest, AStopBeforeTheCachesAreSyncedIsClean) {
  AddCache("cache");
  synced_ = false;
  Start();
  record_.WaitFor("cache starts");
  stop_.request_stop();
  EXPECT_TRUE(result_.get().ok());
  EXPECT_THAT(record_.All(), ElementsAre("cache starts", "cache stops"));
}

TEST_F(ManagerTest, LosingTheLeaseEndsWithAbortedAndStopsTheWorkers) {
  AddCache("cache");
  SetElection();
  AddWorker("worker");
  Start();
  record_.WaitFor("worker starts");
  lose_lease_.request_stop();
  const absl::Status status = result_.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "lease lost");
  record_.WaitFor("worker stops");
  EXPECT_THAT(record_.All(), ::testing::Not(::testing::Contains("cache stops")));
}

TEST_F(ManagerTest, LosingTheLeaseDoesNotWaitForAHangingWorker) {
  std::promise<void> let_go;
  SetElection();
  manager_->AddWorker("worker", [&](std::stop_token) {
    record_.Add("worker starts");
    let_go.get_future().wait();
  });
  Start();
  record_.WaitFor("worker starts");
  lose_lease_.request_stop();
  EXPECT_EQ(result_.get().code(), absl::StatusCode::kAborted);  // with no time gone by
  let_go.set_value();
  manager_.reset();
}

TEST_F(ManagerTest, AnErrorOfTheElectionIsTheResult) {
  AddCache("cache");
  manager_->SetElection([](std::stop_token) { return absl::PermissionDeniedError("leases"); },
                        [](std::stop_token) { return absl::OkStatus(); });
  AddWorker("worker");
  Start();
  EXPECT_EQ(result_.get(), absl::PermissionDeniedError("leases"));
  EXPECT_THAT(record_.All(), ElementsAre("cache starts", "cache stops"));
}

TEST_F(ManagerTest, AHangingPartIsNamedAndTheElectionIsHeld) {
  std::promise<void> let_go;
  SetElection();
  manager_->AddWorker("slow", [&](std::stop_token) {
    record_.Add("slow starts");
    let_go.get_future().wait();
  });
  Start();
  record_.WaitFor("slow starts");
  stop_.request_stop();
  const absl::Status status = AdvanceUntilEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "did not stop within 30 s: slow");
  EXPECT_THAT(record_.All(), ::testing::Not(::testing::Contains("released")));
  let_go.set_value();
  manager_.reset();
  EXPECT_THAT(record_.All(), ::testing::Contains("released"));
}

TEST_F(ManagerTest, APartThatEndsByItselfEndsEverything) {
  AddCache("cache");
  SetElection();
  manager_->AddWorker("worker", [](std::stop_token) {});
  Start();
  const absl::Status status = result_.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("worker ended by itself"));
  EXPECT_THAT(record_.All(), ::testing::IsSupersetOf({"released", "cache stops"}));
}

// It ended the process at once: the lease was kept, and no line of the log named the part.
TEST_F(ManagerTest, AnExceptionOfAPartIsNamedAndEndsEverythingInOrder) {
  std::atomic<bool> fail = false;
  manager_->AddCache(
      "pods",
      [&](std::stop_token stop) {
        while (!fail && !stop.stop_requested()) std::this_thread::yield();
        if (fail) throw std::out_of_range("no such field");
      },
      [] { return true; });
  SetElection();
  AddWorker("worker");
  Start();
  record_.WaitFor("worker starts");
  fail = true;
  const absl::Status status = result_.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("an exception left pods: no such field"));
  EXPECT_THAT(record_.All(), ::testing::IsSupersetOf({"worker stops", "released"}));
}

TEST_F(ManagerTest, RunsWithoutElectionAndCaches) {
  AddWorker("worker");
  Start();
  record_.WaitFor("worker starts");
  EXPECT_TRUE(manager_->Ready().ok());
  stop_.request_stop();
  EXPECT_TRUE(result_.get().ok());
}

}  // namespace
}  // namespace hetero::controller
