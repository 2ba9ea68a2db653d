// CPU workers as real processes, over each transport: whatever becomes of them, the stream is the
// same, and batches that the rank still has stay what they are.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/integration/runtime/rank_with_workers.h"
#include "tests/support/transports.h"

namespace hetero {
namespace {

class TransportTest : public testing::RankWithWorkersTest,
                      public ::testing::WithParamInterface<const feed::Transport*> {
 protected:
  TransportTest() { transports_ = testing::Only(GetParam()); }
  std::string ListenAddress(size_t worker) const override {
    const std::string port = PortOfOwn(worker);
    return GetParam()->fits(port) ? port : RankWithWorkersTest::ListenAddress(worker);
  }
  int64_t Came() const { return CameBy(GetParam()->name); }
};

TEST_P(TransportTest, BatchesComeByIt) {
  StartClient();
  hold_ = 10;
  ASSERT_NO_FATAL_FAILURE(Take());
  // The first ones may have been sent before it was there.
  EXPECT_GT(Came(), schedule_->size() / 2);
  ExpectTheUndisturbedStream();
  ExpectHeldBatchesIntact();
}

TEST_P(TransportTest, BatchesOfAWorkerThatWasKilledStayReadable) {
  StartClient();
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("start"));
  hold_ = 12;
  ASSERT_NO_FATAL_FAILURE(Take(40));
  workers_[0]->Signal(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(Take(40));
  ExpectHeldBatchesIntact();
  StartWorker(0);
  ASSERT_NO_FATAL_FAILURE(TakeUntilTheFirstWorkerServes("killed and started again"));
  const int64_t before = Came();
  ExpectTheUndisturbedStream();
  EXPECT_GT(Came(), before);
  client_.reset();
  ExpectHeldBatchesIntact();
}

TEST_P(TransportTest, WorkerThatWasFrozenGoesOn) {
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

INSTANTIATE_TEST_SUITE_P(Every, TransportTest, ::testing::ValuesIn(feed::EveryTransport()),
                         testing::TransportName);

}  // namespace
}  // namespace hetero
