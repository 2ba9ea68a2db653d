// CPU workers as real processes on the rank's own host, and not enough memory to share: batches are
// sent instead. What shared memory does where there is enough: transport_test.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "runtime/feed/transport/shared_memory_transport.h"
#include "tests/integration/runtime/rank_with_workers.h"

namespace hetero {
namespace {

class SharedMemoryTest : public testing::RankWithWorkersTest {
 protected:
  int64_t InPlace() const { return CameBy(feed::kSharedMemoryTransport.name); }
};

// More is held than the window, and with it the shared memory, has room for.
TEST_F(SharedMemoryTest, BatchesAreSentWhereTheMemoryIsFull) {
  StartClient();
  hold_ = 200;
  ASSERT_NO_FATAL_FAILURE(Take(300));
  EXPECT_LT(InPlace(), 300);
  ExpectTheUndisturbedStream();
  ExpectHeldBatchesIntact();
}

TEST_F(SharedMemoryTest, BatchesAreSentWhereTheSystemRefusesTheMemory) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  StartClient();
  ASSERT_NO_FATAL_FAILURE(Take(100));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(InPlace(), 0);
  ExpectTheUndisturbedStream();
}

}  // namespace
}  // namespace hetero
