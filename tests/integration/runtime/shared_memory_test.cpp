// CPU workers as real processes on the rank's own host: their batches are read where they wrote
// them, whatever becomes of them, and the stream is the same.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/crc32c.h"
#include "tests/integration/runtime/rank_with_workers.h"

namespace hetero {
namespace {

class SharedMemoryTest : public testing::RankWithWorkersTest {
 protected:
  // Every sample that is held still has the bytes that its checksum was computed of.
  void ExpectHeldBatchesIntact() const {
    for (const auto& batch : held_) {
      const int64_t bytes = batch->images.size() / batch->count();
      for (int64_t i = 0; i < batch->count(); ++i) {
        ASSERT_EQ(base::Crc32c(batch->images.data() + i * bytes, static_cast<size_t>(bytes)),
                  batch->crcs[static_cast<size_t>(i)])
            << "step " << batch->ticket.step << ", sample " << i;
      }
    }
  }
  int64_t InPlace() const { return client_->stats().batches_in_place; }
};

TEST_F(SharedMemoryTest, BatchesAreReadInPlace) {
  StartClient();
  hold_ = 10;
  ASSERT_NO_FATAL_FAILURE(Take());
  // The first ones may have been sent before the memory was there.
  EXPECT_GT(InPlace(), schedule_->size() / 2);
  ExpectTheUndisturbedStream();
  ExpectHeldBatchesIntact();
}

TEST_F(SharedMemoryTest, BatchesOfAWorkerThatWasKilledStayReadable) {
  StartClient();
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("start"));
  hold_ = 12;
  ASSERT_NO_FATAL_FAILURE(Take(40));
  workers_[0]->Signal(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(Take(40));
  ExpectHeldBatchesIntact();
  StartWorker(0);
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("killed and started again"));
  const int64_t before = InPlace();
  ExpectTheUndisturbedStream();
  EXPECT_GT(InPlace(), before);
  client_.reset();
  ExpectHeldBatchesIntact();
}

TEST_F(SharedMemoryTest, WorkerThatWasFrozenGoesOnInItsOldMemory) {
  StartClient();
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("start"));
  hold_ = 12;
  workers_[0]->Signal(SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(Take(60));
  workers_[0]->Signal(SIGCONT);
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("continued"));
  ExpectTheUndisturbedStream();
  ExpectHeldBatchesIntact();
}

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
