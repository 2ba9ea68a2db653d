#include "base/resource_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::base {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kTicks = 100;

// As Linux 6.1 writes them.
constexpr char kStat[] =
    "4711 (a (b) c) S 1 4711 4711 0 -1 4194560 1500 7 3 2 1234 566 40 60 20 0 12 0 69318 3133440 "
    "382 "
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
constexpr char kMachine[] =
    "cpu  90362 1049 12652 32764 821 0 210 329 0 0\n"
    "cpu0 43893 816 5422 18816 32 0 16 145 0 0\n"
    "cpu2 100 0 50 800 40 5 3 2 70 0\n"
    "intr 605422 0 0 1\nctxt 12\n";
constexpr char kNetDev[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
    "    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0\n"
    "  eth0: 790222268   13978    0    0    0     0          0         0   594034    8426    0 0\n"
    "eth1:100 1 0 0 0 0 0 0 200 2 0 0\n";
constexpr char kPressure[] =
    "some avg10=53.54 avg60=58.95 avg300=45.87 total=274285027\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";

TEST(ResourceTextTest, ReadsWhatTheKernelWrites) {
  EXPECT_DOUBLE_EQ(ParseSchedstat("1500000000 250000000 17\n")->cpu_seconds, 1.5);
  EXPECT_DOUBLE_EQ(ParseSchedstat("1500000000 250000000 17\n")->run_queue_seconds, 0.25);

  const std::optional<ProcessStat> stat = ParseStat(kStat, kTicks);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->name, "a (b) c");
  EXPECT_DOUBLE_EQ(stat->cpu_seconds, 18);
  EXPECT_DOUBLE_EQ(stat->children_cpu_seconds, 1);
  EXPECT_DOUBLE_EQ(stat->start_seconds, 693.18);

  EXPECT_EQ(ParseResident("765 417 389 5 0 123 0\n", 4096), 417 * 4096);
  EXPECT_EQ(ParseIo("rchar: 6976\nwchar: 1\nread_bytes: 8192\nwrite_bytes: 4096\n")->read, 8192);
  EXPECT_EQ(ParseIo("rchar: 6976\nwchar: 1\nread_bytes: 8192\nwrite_bytes: 4096\n")->written, 4096);
  EXPECT_DOUBLE_EQ(ParseUptime("712.05 1300.99\n").value(), 712.05);
  EXPECT_DOUBLE_EQ(ParsePressure(kPressure).value(), 274.285027);
  EXPECT_DOUBLE_EQ(ParseThrottled("usage_usec 5\nnr_throttled 2\nthrottled_usec 1500000\n").value(),
                   1.5);
  EXPECT_THAT(ParseChildren("12 345 6 \n"), ElementsAre(12, 345, 6));
}

// Core 1 is off; guests' time, the ninth number, is in the first.
TEST(ResourceTextTest, CoresAreFoundByTheirNumber) {
  const std::vector<CoreTimes> cores = ParseCores(kMachine, kTicks);
  ASSERT_EQ(cores.size(), 3u);
  EXPECT_DOUBLE_EQ(cores[0].busy_seconds, (43893 + 816 + 5422 + 16 + 145) / kTicks);
  EXPECT_DOUBLE_EQ(cores[0].all_seconds - cores[0].busy_seconds, (18816 + 32) / kTicks);
  EXPECT_EQ(cores[1].all_seconds, 0);
  EXPECT_DOUBLE_EQ(cores[2].all_seconds, 10);
  EXPECT_DOUBLE_EQ(cores[2].busy_seconds, 1.6);
}

TEST(ResourceTextTest, LoopbackIsNoNetwork) {
  EXPECT_EQ(ParseNetDev(kNetDev).received, 790222268 + 100);
  EXPECT_EQ(ParseNetDev(kNetDev).sent, 594034 + 200);
}

TEST(ResourceTextTest, WhatIsNotThereIsNotTold) {
  EXPECT_FALSE(ParseThrottled("usage_usec 5\n").has_value()) << "the root group";
  EXPECT_FALSE(ParsePressure("").has_value());
  EXPECT_FALSE(ParseStat("", kTicks).has_value());
  EXPECT_FALSE(ParseSchedstat("").has_value());
  EXPECT_THAT(ParseCores("intr 1 2 3\n", kTicks), IsEmpty());
  EXPECT_THAT(ParseChildren(""), IsEmpty());
}

// Every beginning of each text, and each with one byte replaced: no crash, and no number below 0.
TEST(ResourceTextTest, TextThatIsCutOrWrongDoesNoHarm) {
  const std::string huge(40, '9');
  const std::string texts[] = {kStat,
                               kMachine,
                               kNetDev,
                               kPressure,
                               "1 2 3\n",
                               "read_bytes: 8192\nwrite_bytes: 4096\n",
                               "throttled_usec 1500000\n",
                               "712.05 1300.99\n",
                               huge + " " + huge + " " + huge,
                               "cpu" + huge + " 1 2 3\ncpu1 " + huge,
                               "eth0:" + huge + " " + huge,
                               "cpu4294967295 1 1 1 1 1\ncpu-1 1\n",
                               ") (",
                               "5 (x",
                               "-1 -2 -3"};
  for (const std::string& text : texts) {
    for (size_t size = 0; size <= text.size(); ++size) {
      for (const char wrong : {'\0', '-', ' ', '\n', '9', '\xff'}) {
        std::string one = text.substr(0, size);
        if (size > 0 && wrong != '\0') one[size / 2] = wrong;
        if (const auto times = ParseSchedstat(one)) {
          EXPECT_GE(times->cpu_seconds, 0);
        }
        if (const auto stat = ParseStat(one, kTicks)) {
          EXPECT_GE(stat->cpu_seconds, 0);
        }
        if (const auto bytes = ParseResident(one, 4096)) {
          EXPECT_GE(*bytes, 0);
        }
        if (const auto disk = ParseIo(one)) {
          EXPECT_GE(disk->read, 0);
        }
        EXPECT_LE(ParseCores(one, kTicks).size(), kMostCores);
        EXPECT_GE(ParseNetDev(one).received, 0);
        EXPECT_GE(ParseNetDev(one).sent, 0);
        EXPECT_GE(ParsePressure(one).value_or(0), 0);
        EXPECT_GE(ParseThrottled(one).value_or(0), 0);
        EXPECT_GE(ParseUptime(one).value_or(0), 0);
        for (const pid_t child : ParseChildren(one)) EXPECT_GT(child, 0);
      }
    }
  }
}

}  // namespace
}  // namespace hetero::base
