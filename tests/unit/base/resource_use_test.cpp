#include "base/resource_use.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <latch>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/process_usage.h"
#include "base/thread.h"

namespace hetero::base {
namespace {

void Burn(double seconds) {
  const auto used = [] { return ToSeconds(ThreadCpuTime()); };
  const double end = used() + seconds;
  while (used() < end) {
  }
}

double SumOf(const std::vector<TaskUse>& tasks) {
  return std::accumulate(tasks.begin(), tasks.end(), 0.0,
                         [](double sum, const TaskUse& task) { return sum + task.cpu_seconds; });
}

const TaskUse* Named(const ResourceTotals& totals, const std::string& name) {
  const auto found = std::find_if(totals.threads.begin(), totals.threads.end(),
                                  [&](const TaskUse& task) { return task.name == name; });
  return found == totals.threads.end() ? nullptr : &*found;
}

TEST(ResourceReaderTest, ThreadsAreToldByTheirNamesAndSumToTheProcess) {
  ResourceReader reader;
  std::latch named(2), go(1), burnt(2), end(1);
  std::jthread busy([&] {
    SetThreadName("busy");
    named.count_down();
    go.wait();
    Burn(0.2);
    burnt.count_down();
    end.wait();
  });
  std::jthread idle([&] {
    SetThreadName("idle");
    named.count_down();
    burnt.count_down();
    end.wait();
  });
  named.wait();
  Burn(0.02);  // a process' age is told in hundredths of a second
  const ResourceTotals before = reader.Read();
  go.count_down();
  burnt.wait();
  const ResourceTotals after = reader.Read();
  const double whole = ReadProcessUsage().cpu_seconds;
  end.count_down();

  ASSERT_NE(Named(before, "busy"), nullptr);
  ASSERT_NE(Named(after, "busy"), nullptr);
  ASSERT_NE(Named(after, "idle"), nullptr);
  EXPECT_GE(Named(after, "busy")->cpu_seconds - Named(before, "busy")->cpu_seconds, 0.19);
  EXPECT_LT(Named(after, "idle")->cpu_seconds, 0.1);
  // No thread has ended meanwhile.
  EXPECT_NEAR(SumOf(after.threads) - SumOf(before.threads),
              after.process_cpu_seconds - before.process_cpu_seconds, 0.05);
  EXPECT_LE(after.process_cpu_seconds, whole + 0.001);
  EXPECT_GT(before.process_seconds, 0);
  EXPECT_EQ(after.process_seconds, 0) << "with the first reading alone";
}

TEST(ResourceReaderTest, AProcessBelowThisOneCountsWhileItLivesAndAfter) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    Burn(0.2);
    const bool said = write(told[1], "x", 1) == 1;
    if (said) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(told[0], &byte, 1), 1);
  ResourceReader reader;
  const ResourceTotals living = reader.Read();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const ResourceTotals ended = reader.Read();
  close(told[0]);
  close(told[1]);

  ASSERT_EQ(living.children.size(), 1u);
  EXPECT_EQ(living.children.front().id, child);
  EXPECT_GE(living.children.front().cpu_seconds, 0.15);
  ASSERT_GE(living.child_threads.size(), 1u);
  EXPECT_EQ(living.child_threads.front().id, child);
  EXPECT_GE(living.child_threads.front().cpu_seconds, 0.15);
  EXPECT_TRUE(ended.children.empty());
  EXPECT_TRUE(ended.child_threads.empty());
  EXPECT_GE(ended.children_cpu_seconds - living.children_cpu_seconds, 0.15);
}

TEST(ResourceReaderTest, AProcessThatBeginsAfterTheFirstReadingIsSeenByTheNext) {
  ResourceReader reader;
  ASSERT_TRUE(reader.Read().children.empty());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const ResourceTotals next = reader.Read();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);

  ASSERT_EQ(next.children.size(), 1u);
  EXPECT_EQ(next.children.front().id, child);
}

TEST(ResourceReaderTest, SeesTheMachine) {
  ResourceReader reader;
  const ResourceTotals totals = reader.Read();
  EXPECT_GE(totals.cores.size(), 1u);
  EXPECT_GT(totals.cores[0].all_seconds, 0);
  EXPECT_GT(totals.usable_cores, 0);
  EXPECT_LE(totals.usable_cores, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(totals.rss_bytes, 1 << 20);
  EXPECT_GT(totals.memory_limit_bytes, totals.rss_bytes);
}

}  // namespace
}  // namespace hetero::base
