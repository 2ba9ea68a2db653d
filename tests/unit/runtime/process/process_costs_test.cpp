#include "runtime/process/process_costs.h"

#include <gtest/gtest.h>

#include "google/protobuf/util/message_differencer.h"

namespace hetero::process {
namespace {

using google::protobuf::util::MessageDifferencer;

// Whoever adds up members of one process must not count it once for each.
TEST(ProcessCostsTest, AreToldByOneMemberOfAProcess) {
  v1::Counters counters;
  counters.set_samples(7);
  counters.set_busy_seconds(0.5);
  const v1::Counters own = counters;
  SetProcessCosts(counters);
  EXPECT_GT(counters.peak_rss_bytes(), 0);
  EXPECT_GT(counters.cpu_seconds(), 0);
  // What no test of this program has asked a store for.
  counters.set_storage_requests(1);
  counters.set_storage_retries(2);
  counters.set_storage_bytes(3);
  counters.set_storage_dollars(4);
  counters.set_storage_throttled(5);
  counters.set_storage_seconds(6);
  ClearProcessCosts(counters);
  EXPECT_TRUE(MessageDifferencer::Equals(counters, own)) << counters.DebugString();
}

}  // namespace
}  // namespace hetero::process
