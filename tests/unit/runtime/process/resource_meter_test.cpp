#include "runtime/process/resource_meter.h"

#include <gtest/gtest.h>

#include "runtime/process/thread_groups.h"

namespace hetero::process {
namespace {

using insight::ThreadGroup;

double Of(const insight::UsePoint& point, ThreadGroup group) {
  return point.cpu_seconds[static_cast<size_t>(group)];
}

base::ResourceTotals Totals(double cpu, std::vector<base::TaskUse> threads) {
  return {.threads = std::move(threads), .process_cpu_seconds = cpu};
}

TEST(ThreadGroupsTest, NamesOfThisProjectsThreadsAndOfOthers) {
  EXPECT_EQ(GroupOfThread("make-cpu-0"), ThreadGroup::kPipeline);
  EXPECT_EQ(GroupOfThread("feed-data"), ThreadGroup::kFeed);
  EXPECT_EQ(GroupOfThread("hetero-trainer"), ThreadGroup::kTrain);
  EXPECT_EQ(GroupOfThread("pt_autograd_0"), ThreadGroup::kTrain);
  EXPECT_EQ(GroupOfThread("read-ahead"), ThreadGroup::kStorage);
  EXPECT_EQ(GroupOfThread("grpc_global_tim"), ThreadGroup::kGrpc);
  EXPECT_EQ(GroupOfThread("default-executo"), ThreadGroup::kGrpc);
  EXPECT_EQ(GroupOfThread("member-beat"), ThreadGroup::kOther);
  EXPECT_EQ(GroupOfThread(""), ThreadGroup::kOther);
}

TEST(ResourceMeterTest, TheFirstPointIsOfAllThatTheProcessDid) {
  ResourceMeter meter;
  base::ResourceTotals totals =
      Totals(3, {{1, "hetero-runtime", 1, 0.25}, {2, "make-cpu-0", 1.5, 0}});
  totals.process_seconds = 8;
  totals.disk.read = 100;
  totals.network.received = 1'000'000;
  totals.cores = {{50, 100}};
  const insight::UsePoint point = meter.Next(totals, 0.001);
  EXPECT_EQ(point.span, 8);
  EXPECT_EQ(Of(point, ThreadGroup::kPipeline), 1.5);
  EXPECT_EQ(Of(point, ThreadGroup::kOther), 1.5) << "its main thread, and one that has ended";
  EXPECT_EQ(point.run_queue_seconds, 0.25);
  EXPECT_EQ(point.disk_read_bytes, 100);
  EXPECT_EQ(point.received_bytes, 0) << "of the machine, from before the process";
  EXPECT_TRUE(point.core_busy.empty());
}

TEST(ResourceMeterTest, LaterOnesAreOfWhatWasUsedBetween) {
  ResourceMeter meter;
  base::ResourceTotals totals = Totals(3, {{1, "make-a", 1, 0}, {2, "make-b", 2, 0.5}});
  totals.cores = {{10, 100}, {10, 100}};
  totals.io_pressure_seconds = 4;
  totals.throttled_seconds = 1;
  totals.network.sent = 50;
  meter.Next(totals, 1);

  totals = Totals(4.25, {{1, "make-a", 1.25, 0}, {2, "make-b", 2.75, 0.75}});
  totals.cores = {{60, 200}, {10, 200}};
  totals.io_pressure_seconds = 4.25;
  totals.throttled_seconds = 1.125;
  totals.network.sent = 80;
  totals.rss_bytes = 9;
  const insight::UsePoint point = meter.Next(totals, 0.5);
  EXPECT_EQ(point.span, 0.5);
  EXPECT_DOUBLE_EQ(Of(point, ThreadGroup::kPipeline), 1);
  EXPECT_DOUBLE_EQ(Of(point, ThreadGroup::kOther), 0.25) << "a thread that came and went";
  EXPECT_EQ(point.threads[0], 2);
  EXPECT_DOUBLE_EQ(point.busiest_thread_seconds[0], 0.75);
  EXPECT_DOUBLE_EQ(point.run_queue_seconds, 0.25);
  EXPECT_DOUBLE_EQ(point.io_pressure.value(), 0.5);
  EXPECT_DOUBLE_EQ(point.throttled_seconds.value(), 0.125);
  EXPECT_FALSE(point.cpu_pressure.has_value());
  EXPECT_EQ(point.sent_bytes, 30);
  EXPECT_DOUBLE_EQ(point.machine_busy_cores, 0.5);
  EXPECT_EQ(point.core_busy, std::string("\x80\0", 2));
  EXPECT_EQ(point.rss_bytes, 9);
}

// A child's time is its own while it lives, and its parent's once it was waited for.
TEST(ResourceMeterTest, AChildThatEndsIsCountedOnce) {
  ResourceMeter meter;
  base::ResourceTotals totals;
  totals.children = {{7, "python3", 2, 0}, {8, "python3", 1, 0}};
  EXPECT_DOUBLE_EQ(Of(meter.Next(totals, 1), ThreadGroup::kPython), 3);
  totals.children = {{8, "python3", 1.5, 0}};  // 7 is gone, and nobody has waited for it yet
  EXPECT_DOUBLE_EQ(Of(meter.Next(totals, 1), ThreadGroup::kPython), 0);
  totals.children_cpu_seconds = 2.25;
  const insight::UsePoint point = meter.Next(totals, 1);
  EXPECT_DOUBLE_EQ(Of(point, ThreadGroup::kPython), 0.75);
}

// Each child once counted as one thread: threads of a script that wait for its lock were not seen.
TEST(ResourceMeterTest, ThreadsOfChildrenAreThreads) {
  ResourceMeter meter;
  base::ResourceTotals totals;
  totals.children = {{7, "python3", 2, 0}};
  totals.child_threads = {{7, "python3", 1, 0}, {8, "python3", 1, 0}};
  meter.Next(totals, 1);
  totals.children = {{7, "python3", 3, 0}};
  totals.child_threads = {{7, "python3", 1.25, 0}, {8, "python3", 1.75, 0}};
  const insight::UsePoint point = meter.Next(totals, 1);
  const auto python = static_cast<size_t>(ThreadGroup::kPython);
  EXPECT_DOUBLE_EQ(point.cpu_seconds[python], 1);
  EXPECT_DOUBLE_EQ(point.busiest_thread_seconds[python], 0.75);
  EXPECT_EQ(point.threads[python], 2);
}

// A script's end is seen as its time alone, which once looked as if no thread had been busy.
TEST(ResourceMeterTest, ThreadsThatHaveEndedMayHaveBeenTheBusiest) {
  ResourceMeter meter;
  base::ResourceTotals totals;
  totals.children = {{7, "python3", 2, 0}};
  totals.child_threads = {{7, "python3", 2, 0}};
  meter.Next(totals, 1);
  totals.children.clear();
  totals.child_threads.clear();
  totals.children_cpu_seconds = 2.5;
  const insight::UsePoint point = meter.Next(totals, 1);
  EXPECT_DOUBLE_EQ(point.busiest_thread_seconds[static_cast<size_t>(ThreadGroup::kPython)], 0.5);
}

// The number of a thread that has ended is given to another one.
TEST(ResourceMeterTest, ANumberThatIsGivenOutAgainIsAnotherThread) {
  ResourceMeter meter;
  meter.Next(Totals(5, {{1, "make-a", 5, 1}}), 1);
  const insight::UsePoint point = meter.Next(Totals(5.5, {{1, "feed", 0.5, 0.25}}), 1);
  EXPECT_DOUBLE_EQ(Of(point, ThreadGroup::kFeed), 0.5);
  EXPECT_DOUBLE_EQ(insight::Sum(point.cpu_seconds), 0.5);
  EXPECT_DOUBLE_EQ(point.run_queue_seconds, 0.25);
}

// Threads are read one after the other, and the process after them: what it does meanwhile must
// not be added up again and again.
TEST(ResourceMeterTest, SumsDoNotDriftFromTheProcess) {
  ResourceMeter meter;
  double sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    const double late = i % 2 == 0 ? 0.003 : 0;  // of each second reading
    sum += insight::Sum(
        meter.Next(Totals(0.5 * i + late, {{1, "make-a", 0.5 * i, 0}}), 0.5).cpu_seconds);
  }
  EXPECT_NEAR(sum, 500, 0.01);
}

// Clocks that go back, counters of a network that begin again.
TEST(ResourceMeterTest, NothingIsEverLessThanNothing) {
  ResourceMeter meter;
  base::ResourceTotals totals = Totals(5, {{1, "make-a", 5, 1}});
  totals.network = {100, 100};
  totals.disk = {100, 100};
  totals.cores = {{10, 20}};
  totals.cpu_pressure_seconds = 9;
  totals.throttled_seconds = 9;
  totals.children_cpu_seconds = 9;
  meter.Next(totals, 1);
  base::ResourceTotals less;
  less.cores = {{5, 10}};
  less.cpu_pressure_seconds = 1;
  less.throttled_seconds = 1;
  const insight::UsePoint point = meter.Next(less, 1);
  EXPECT_EQ(insight::Sum(point.cpu_seconds), 0);
  EXPECT_EQ(point.received_bytes, 0);
  EXPECT_EQ(point.disk_read_bytes, 0);
  EXPECT_EQ(point.machine_busy_cores, 0);
  EXPECT_EQ(point.cpu_pressure, 0);
  EXPECT_EQ(point.throttled_seconds, 0);
}

}  // namespace
}  // namespace hetero::process
