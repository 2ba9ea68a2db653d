#include "operator/reconcile/call_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

namespace hetero::reconcile {
namespace {

constexpr auto kLimit = std::chrono::seconds(20);
constexpr CallPace::Settings kAlwaysFifty{.most = 50, .first = 50, .queued = 50};

// Calls that hang until they are let go, counted.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    most_ = std::max(most_, inside_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --inside_;
  }
  bool AwaitInside(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [&] { return inside_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int inside_ = 0, most_ = 0;
  bool open_ = false;
};

std::future<void> Async(std::function<void()> call) {
  return std::async(std::launch::async, std::move(call));
}

TEST(CallPoolTest, EachCallIsMadeOnce) {
  CallPool pool(base::Clock::Real(), {.most = 7});
  for (const size_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    pool.Run(count, [&](size_t i) { ++calls[i]; });
    EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
  }
}

TEST(CallPoolTest, OneAtATimeIsInOrderAndOnTheCallersThread) {
  CallPool pool(base::Clock::Real(), {.most = 1});
  std::vector<size_t> order;
  pool.Run(50, [&, caller = std::this_thread::get_id()](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(CallPoolTest, AStageHasItsOwnNumberOfCallsAtOnceWhateverOthersDo) {
  CallPool pool(base::Clock::Real(), {.most = 4});
  Gate first, second;
  auto one = Async([&] { pool.Run(20, [&](size_t) { first.Pass(); }); });
  auto two = Async([&] { pool.Run(20, [&](size_t) { second.Pass(); }); });
  EXPECT_TRUE(first.AwaitInside(4));
  EXPECT_TRUE(second.AwaitInside(4));
  first.Open();
  second.Open();
  one.get();
  two.get();
  EXPECT_EQ(first.most(), 4);
  EXPECT_EQ(second.most(), 4);
}

// A namespace's admission webhook that does not answer: its calls used to hold all threads.
TEST(CallPoolTest, AStageWhoseCallsHangHoldsUpNoOther) {
  CallPool pool(base::Clock::Real(), kAlwaysFifty);
  Gate gate;
  auto slow = Async([&] { pool.Run(500, [&](size_t) { gate.Pass(); }); });
  ASSERT_TRUE(gate.AwaitInside(50));
  std::atomic<int> done = 0;
  auto quick = Async([&] { pool.Run(500, [&](size_t) { ++done; }); });
  EXPECT_EQ(quick.wait_for(kLimit), std::future_status::ready);
  EXPECT_EQ(done, 500);
  gate.Open();
  slow.get();
  EXPECT_EQ(gate.most(), 50);
}

// Sixteen of them have more calls than there are threads.
TEST(CallPoolTest, HoweverManyStagesHangTheNextOneIsHelped) {
  CallPool pool(base::Clock::Real(), kAlwaysFifty);
  Gate gate;
  std::vector<std::future<void>> hanging;
  for (int i = 0; i < 16; ++i) {
    hanging.push_back(Async([&] { pool.Run(500, [&](size_t) { gate.Pass(); }); }));
  }
  EXPECT_TRUE(gate.AwaitInside(16 + 200));
  Gate both;
  auto next = Async([&] { pool.Run(2, [&](size_t) { both.Pass(); }); });
  EXPECT_TRUE(both.AwaitInside(2)) << "its caller alone is in a call";
  both.Open();
  next.get();
  gate.Open();
  for (std::future<void>& one : hanging) one.get();
}

// The line in a busy API server, in which calls of small jobs wait, too, used to be 46 long.
TEST(CallPoolTest, AStageWhoseCallsWaitForEachOtherHasFewAtOnce) {
  CallPool pool(base::Clock::Real(), {.most = 50});
  std::counting_semaphore<4> answering(4);
  std::atomic<int> inside = 0, ended = 0, most = 0;
  pool.Run(600, [&](size_t) {
    ++inside;
    if (ended >= 200) most = std::max<int>(most, inside);
    answering.acquire();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    answering.release();
    --inside;
    ++ended;
  });
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 24);
}

// Each of the others that hangs used to take one of them for good, the thread of a call that ended.
TEST(CallPoolTest, AStageKeepsItsHelpersWhileOthersBeginToHang) {
  enum class Phase { kAllGoOn, kOthersHang, kOver };
  std::atomic<Phase> phase = Phase::kAllGoOn;
  const auto take_time = [&] {
    if (phase != Phase::kOver) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  CallPool pool(base::Clock::Real(), kAlwaysFifty);
  Gate gate;
  std::vector<std::future<void>> stages;
  for (int i = 0; i < 15; ++i) {
    stages.push_back(Async([&] {
      pool.Run(5000, [&](size_t) {
        if (phase == Phase::kOthersHang) gate.Pass();
        take_time();
      });
    }));
  }
  std::atomic<int> inside = 0, most = 0, ended = 0;
  stages.push_back(Async([&] {
    pool.Run(200'000, [&](size_t) {
      most = std::max<int>(most, ++inside);
      take_time();
      --inside;
      ++ended;
    });
  }));
  const auto await = [](const auto& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  };
  EXPECT_TRUE(await([&] { return ended >= 200; }));
  phase = Phase::kOthersHang;
  EXPECT_TRUE(gate.AwaitInside(15 + 150));
  EXPECT_TRUE(await([&, from = ended.load()] { return ended >= from + 1000; }));
  most = 0;
  EXPECT_TRUE(await([&] { return most >= 8; })) << most << " calls at once";
  phase = Phase::kOver;
  gate.Open();
  for (std::future<void>& one : stages) one.get();
}

}  // namespace
}  // namespace hetero::reconcile
