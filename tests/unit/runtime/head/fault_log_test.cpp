#include "runtime/head/fault_log.h"

#include <gtest/gtest.h>

namespace hetero::head {
namespace {

TEST(FaultLogTest, KeepsNoMoreThanItsLimitAndCountsTheOthers) {
  JobRecord record;
  record.faults.resize(kMostFaults - 1, Fault{.over = true});
  const Moment now{};
  const size_t last = OpenFault("cpu-1", 1, "cpu-1 was lost", now, record);
  EXPECT_EQ(record.faults[last].what, "cpu-1 was lost");
  for (int64_t incarnation = 2; incarnation < 10; ++incarnation) {
    const size_t beyond = OpenFault("cpu-1", incarnation, "cpu-1 was lost", now, record);
    CloseFault(beyond, kReplaced, true, now, record);
  }
  EXPECT_EQ(record.faults.size(), kMostFaults + 1);
  EXPECT_EQ(record.past.faults_left_out, 8);
  EXPECT_EQ(record.faults.back().what, "more faults than the head keeps");
  EXPECT_TRUE(record.faults[last].open()) << "it is none of those";
}

}  // namespace
}  // namespace hetero::head
