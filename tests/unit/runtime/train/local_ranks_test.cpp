#include "runtime/train/program/local_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace hetero::train {
namespace {

// Each rank runs its line in a shell.
int RunLines(const std::vector<std::string>& lines, std::stop_token stop = {}) {
  LocalRankOptions options{.count = static_cast<int>(lines.size()), .program = "/bin/sh"};
  for (const std::string& line : lines) options.arguments.push_back({"-c", line});
  return RunLocalRanks(options, base::Clock::Real(), stop);
}

TEST(LocalRanksTest, EachRankKnowsItsPlaceAndItsGpu) {
  setenv("CUDA_VISIBLE_DEVICES", "4,6", 1);
  EXPECT_EQ(RunLines({"test $HETERO_LOCAL_RANK = 0 -a $CUDA_VISIBLE_DEVICES = 4",
                      "test $HETERO_LOCAL_RANK = 1 -a $CUDA_VISIBLE_DEVICES = 6"}),
            0);
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(VisibleGpu("", 3), "3");
  EXPECT_EQ(VisibleGpu("GPU-a,GPU-b", 1), "GPU-b");
}

// A rank whose parent is not the one that it is told of ends at once.
TEST(LocalRanksTest, ARanksParentIsWhoStartedIt) {
  setenv("HETERO_PARENT_PID", "1", 1);
  EXPECT_EQ(RunLines({"test $HETERO_PARENT_PID = $PPID"}), 0);
  unsetenv("HETERO_PARENT_PID");
}

TEST(LocalRanksTest, OneFailureEndsThePodWithItsCode) {
  EXPECT_EQ(RunLines({"exec sleep 600", "exit 7"}), 7);
  EXPECT_EQ(RunLines({"kill -9 $$", "exec sleep 600"}), 128 + 9);
}

TEST(LocalRanksTest, AStopReachesEveryRank) {
  std::stop_source stop;
  stop.request_stop();
  // A shell that is told to stop before its trap is set ends by the signal.
  const int code = RunLines({"exec sleep 600", "exec sleep 600"}, stop.get_token());
  EXPECT_EQ(code, 128 + 15);
}

TEST(LocalRanksTest, AProgramThatIsNotThereIsAFailure) {
  LocalRankOptions options{.count = 1, .program = "/nowhere/trainer", .arguments = {{}}};
  EXPECT_EQ(RunLocalRanks(options, base::Clock::Real(), {}), 1);
}

}  // namespace
}  // namespace hetero::train
