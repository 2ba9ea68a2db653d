#include "runtime/interpreter/interpreters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/pipeline/pipeline.h"
#include "tests/unit/runtime/interpreter/functions.h"

namespace hetero::interpreter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

#define ASSERT_STARTED(interpreters) ASSERT_TRUE(interpreters.ok()) << interpreters.status()

// Calls `count` samples on each of `threads` threads; how many did not come back as they should.
int CallOnThreads(const Interpreters& interpreters, int threads, int count) {
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      for (int i = 0; i < count; ++i) {
        const int64_t sample = thread * count + i;
        pipeline::Image out;
        const absl::Status called = Call(interpreters, 0, sample, &out);
        if (called.ok() && out.bytes.front() == static_cast<uint8_t>(sample)) continue;
        ADD_FAILURE() << "sample " << sample << ": " << called;
        ++wrong;
      }
    });
  }
  all.clear();
  return wrong;
}

TEST(InterpretersTest, OneForEachThreadThatCalls) {
  const Functions functions("def same(sample, rng):\n  time.sleep(0.01)\n  return sample\n");
  const auto interpreters = functions.Start({"same"});
  ASSERT_STARTED(interpreters);
  EXPECT_EQ(CallOnThreads(**interpreters, 4, 100), 0);
  EXPECT_EQ((*interpreters)->counters().interpreters, 4);
  EXPECT_EQ((*interpreters)->counters().replaced, 0);
  EXPECT_GT((*interpreters)->counters().private_bytes, 0);
}

TEST(InterpretersTest, AsManyAsMemoryHasRoomFor) {
  const Functions functions(
      "kept = []\n"
      "def large(sample, rng):\n"
      "  if not kept: kept.append(b'x' * (40 << 20))\n"
      "  time.sleep(0.002)\n"
      "  return sample\n");
  const auto interpreters = functions.Start({"large"}, {.memory_bytes = 150 * kMiB});
  ASSERT_STARTED(interpreters);
  EXPECT_EQ(CallOnThreads(**interpreters, 6, 50), 0);
  EXPECT_GE((*interpreters)->counters().private_bytes, 40 * kMiB);
  EXPECT_LE((*interpreters)->counters().interpreters, 3);
  EXPECT_GE((*interpreters)->counters().interpreters, 2);
}

TEST(InterpretersTest, OneThatGrowsIsReplaced) {
  const Functions functions(
      "kept = []\n"
      "def leaks(sample, rng):\n"
      "  kept.append(b'x' * (1 << 20))\n"
      "  return sample\n");
  const auto interpreters = functions.Start({"leaks"}, {.memory_bytes = 60 * kMiB});
  ASSERT_STARTED(interpreters);
  EXPECT_EQ(CallOnThreads(**interpreters, 2, 200), 0);
  EXPECT_GE((*interpreters)->counters().replaced, 3);
}

TEST(InterpretersTest, AnotherHostTakesThePlaceOfOneThatEnded) {
  const Functions functions("def same(sample, rng): return sample\n");
  const auto interpreters = functions.Start({"same"});
  ASSERT_STARTED(interpreters);
  for (int strike = 0; strike < 3; ++strike) {
    const std::vector<pid_t> hosts = ChildrenOf(getpid());
    ASSERT_EQ(hosts.size(), 1u);
    EXPECT_EQ(CallOnThreads(**interpreters, 3, 20), 0);
    kill(hosts[0], SIGKILL);  // and with it its interpreters
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(hosts[0]), &info, WEXITED | WNOWAIT);
    EXPECT_EQ(CallOnThreads(**interpreters, 3, 20), 0);
    EXPECT_NE(ChildrenOf(getpid()), hosts);
  }
}

void ExpectChangeSeen(const std::function<void(const Functions&)>& change) {
  const Functions functions("import helper\ndef same(sample, rng): return helper.same(sample)\n");
  functions.WriteBeside("helper.py", "def same(sample): return sample\n");
  const auto interpreters = functions.Start({"same"});
  ASSERT_STARTED(interpreters);
  change(functions);
  kill(ChildrenOf(getpid()).at(0), SIGKILL);
  const absl::Status called = Call(**interpreters, 0, 1);
  EXPECT_EQ(called.code(), absl::StatusCode::kFailedPrecondition) << called;
  EXPECT_THAT(called.message(), HasSubstr("have changed since this worker began"));
}

TEST(InterpretersTest, AnotherHostMustBeTheSame) {
  ExpectChangeSeen([](const Functions& functions) {
    functions.Rewrite(
        "import helper\ndef same(sample, rng): return {'image': 1 - sample['image']}\n");
  });
}

TEST(InterpretersTest, SoMustWhatItsModulesImport) {
  ExpectChangeSeen([](const Functions& functions) {
    functions.WriteBeside("helper.py", "def same(sample): return {'image': 1 - sample['image']}\n");
  });
}

// Somebody may still have to be told that it has ended.
bool Lives(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return (stat >> number >> name >> state) && state != "Z";
}

TEST(InterpretersTest, NothingIsLeft) {
  const Functions functions(
      "def sleeps(sample, rng):\n"
      "  os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '1000')\n"
      "  return sample\n");
  std::vector<pid_t> all;
  {
    const auto interpreters = functions.Start({"sleeps"});
    ASSERT_STARTED(interpreters);
    EXPECT_EQ(CallOnThreads(**interpreters, 2, 2), 0);
    all = ChildrenOf(getpid());
    for (size_t i = 0; i < all.size(); ++i) {
      for (const pid_t child : ChildrenOf(all[i])) all.push_back(child);
    }
    EXPECT_GE(all.size(), 6u);  // a host, two interpreters, and what these have started
  }
  for (const pid_t pid : all) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (Lives(pid) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_FALSE(Lives(pid)) << pid;
  }
}

TEST(InterpretersTest, AFunctionThatHangsIsTriedThreeTimes) {
  const Functions functions(
      "def hangs(sample, rng):\n"
      "  if sample['image'][0, 0, 0] == 3: time.sleep(1000)\n"
      "  return sample\n");
  const auto interpreters = functions.Start({"hangs"}, {.patience = seconds(2)});
  ASSERT_STARTED(interpreters);
  EXPECT_TRUE(Call(**interpreters, 0, 2).ok());
  const absl::Status called = Call(**interpreters, 0, 3);
  EXPECT_EQ(called.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(called.message(), AllOf(HasSubstr("functions.hangs"), HasSubstr("3 times in a row")));
  EXPECT_TRUE(Call(**interpreters, 0, 4).ok());
  EXPECT_EQ((*interpreters)->counters().replaced, 3);
}

TEST(InterpretersTest, StopEndsCallsAndWaits) {
  const Functions functions(
      "def hangs(sample, rng):\n"
      "  if sample['image'][0, 0, 0] > 0: time.sleep(1000)\n"
      "  return sample\n");
  // Room for one: the others wait for it.
  const auto interpreters = functions.Start({"hangs"}, {.memory_bytes = 1});
  ASSERT_STARTED(interpreters);
  EXPECT_TRUE(Call(**interpreters, 0, 0).ok());
  EXPECT_TRUE(Call(**interpreters, 0, 0).ok());
  std::atomic<int> cancelled = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      if (absl::IsCancelled(Call(**interpreters, 0, 1))) ++cancelled;
    });
  }
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ((*interpreters)->counters().interpreters, 1);
  (*interpreters)->Stop();
  threads.clear();
  EXPECT_EQ(cancelled, 3);
}

TEST(InterpretersTest, ChildrenOfForkHaveTheirOwn) {
  const Functions functions("def same(sample, rng): return sample\n");
  const auto interpreters = functions.Start({"same"});
  ASSERT_STARTED(interpreters);
  EXPECT_EQ(CallOnThreads(**interpreters, 2, 10), 0);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    for (int64_t sample = 0; sample < 20; ++sample) {
      pipeline::Image out;
      if (!Call(**interpreters, 0, sample, &out).ok() || out.bytes[0] != sample) ++wrong;
    }
    _exit(wrong);
  }
  EXPECT_EQ(CallOnThreads(**interpreters, 2, 50), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(InterpretersTest, WhatAFunctionTakesIsCounted) {
  const Functions functions(
      "def works(sample, rng):\n"
      "  end = time.process_time() + 0.03\n"
      "  while time.process_time() < end: pass\n"
      "  return sample\n");
  const auto interpreters = functions.Start({"works"});
  ASSERT_STARTED(interpreters);
  const base::Duration of_this = (*interpreters)->ThreadCpu();
  std::jthread([&] {
    const base::Duration before = (*interpreters)->ThreadCpu();
    for (int64_t sample = 0; sample < 3; ++sample)
      EXPECT_TRUE(Call(**interpreters, 0, sample).ok());
    EXPECT_GE((*interpreters)->ThreadCpu() - before, milliseconds(90));
    EXPECT_LT((*interpreters)->ThreadCpu() - before, seconds(2));
  }).join();
  EXPECT_EQ((*interpreters)->ThreadCpu(), of_this);
  EXPECT_GE((*interpreters)->counters().cpu_seconds, 0.09);
}

TEST(InterpretersTest, APipelineKnowsWhatItsFunctionCosts) {
  const Functions functions(
      "def works(sample, rng):\n"
      "  end = time.process_time() + 0.02\n"
      "  while time.process_time() < end: pass\n"
      "  return sample\n");
  const auto interpreters = functions.Start({"works"});
  ASSERT_STARTED(interpreters);
  const auto pipeline = pipeline::Pipeline::Create(
      {{.op = api::OperatorKind::kVerticalFlip, .probability = 1.0}, functions.Spec("works")},
      kShape, job::Split::kTrain, base::Clock::Real(), 0, api::kImageView, interpreters->get());
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const source::RawSample sample{.shape = kShape, .bytes = std::vector<uint8_t>(60, 9)};
  std::vector<uint8_t> out(60);
  for (int64_t id = 0; id < 17; ++id) {
    ASSERT_TRUE((*pipeline)->Run(sample, {.seed = 1, .epoch = 0, .sample_id = id}, out).ok());
  }
  const std::vector<pipeline::OperatorCost> costs = (*pipeline)->costs();
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_EQ(costs[0].samples, 2);  // 7, 15
  EXPECT_EQ(costs[0].python, base::Duration{});
  EXPECT_LT(costs[0].cpu, milliseconds(20));
  EXPECT_EQ(costs[1].samples, 2);
  EXPECT_GE(costs[1].python, milliseconds(40));
  EXPECT_GT(costs[1].cpu, costs[1].python);  // the way to it and back
}

}  // namespace
}  // namespace hetero::interpreter
