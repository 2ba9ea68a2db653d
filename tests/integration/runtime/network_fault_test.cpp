// CPU workers as real processes behind a network that a proxy spoils. Whatever it does, the stream
// is that of the undisturbed run: the digest covers every sample's bytes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/runtime/rank_with_workers.h"
#include "tests/integration/support/proxy.h"
#include "tests/support/transports.h"

namespace hetero {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Proxy;

class NetworkFaultTest : public testing::RankWithWorkersTest {
 protected:
  NetworkFaultTest() {
    for (size_t i = 0; i < kWorkers; ++i) {
      proxies_.push_back(std::make_unique<Proxy>(ListenAddress(i)));
    }
  }
  std::string ListenAddress(size_t worker) const override { return PortOfOwn(worker); }
  std::string AddressOf(size_t worker) const override { return proxies_[worker]->address(); }

  std::vector<std::unique_ptr<Proxy>> proxies_;
};

// Over each transport that a network carries.
class TransportFaultTest : public NetworkFaultTest,
                           public ::testing::WithParamInterface<const feed::Transport*> {
 protected:
  TransportFaultTest() { transports_ = testing::Only(GetParam()); }
};

TEST_F(NetworkFaultTest, DelayAndSmallPieces) {
  proxies_[0]->SetDelay(milliseconds(100));
  proxies_[1]->SetPieces(700);
  StartClient();
  ExpectTheUndisturbedStream();
}

TEST_F(NetworkFaultTest, LossOfOnePercent) {
  for (const auto& proxy : proxies_) {
    proxy->SetPieces(16 << 10);
    proxy->SetLoss(100);
  }
  StartClient();
  ExpectTheUndisturbedStream();
}

TEST_F(NetworkFaultTest, SlowReader) {
  proxies_[0]->SetRate(300'000);
  StartClient();
  ExpectTheUndisturbedStream();
}

// A ping's answer comes behind the batches that are on their way.
TEST_F(NetworkFaultTest, ASlowLinkIsNotTakenForADeadOne) {
  transports_ = {feed::EveryTransport().back()};  // gRPC alone
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  const int64_t connections = proxies_[0]->connections();  // workers may have listened late
  for (const auto& proxy : proxies_) proxy->SetRate(200'000);
  ASSERT_NO_FATAL_FAILURE(Take(120));  // 33 s
  EXPECT_EQ(proxies_[0]->connections(), connections);
  for (const auto& proxy : proxies_) proxy->SetRate(0);
  ExpectTheUndisturbedStream();
}

TEST_P(TransportFaultTest, ConnectionsThatBreakAgainAndAgain) {
  StartClient();
  for (int i = 0; i < 15; ++i) {
    ASSERT_NO_FATAL_FAILURE(Take(10));
    proxies_[static_cast<size_t>(i % 2)]->BreakAll();
  }
  ExpectTheUndisturbedStream();
}

TEST_F(NetworkFaultTest, ShortCutThatHeals) {
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  proxies_[0]->Cut();
  ASSERT_NO_FATAL_FAILURE(Take(60));
  std::this_thread::sleep_for(seconds(2));
  proxies_[0]->Heal();
  TakeUntilTheFirstWorkerServes("cut for two seconds");
  ExpectTheUndisturbedStream();
}

// gRPC gives the connection up after 15 s; the way back must not take as long again.
TEST_F(NetworkFaultTest, CutThatOutlivesTheConnection) {
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  proxies_[0]->Cut();
  ASSERT_NO_FATAL_FAILURE(Take(60));
  std::this_thread::sleep_for(seconds(20));
  proxies_[0]->Heal();
  TakeUntilTheFirstWorkerServes("cut for twenty seconds");
  ExpectTheUndisturbedStream();
}

TEST_P(TransportFaultTest, BatchesComeByItWhereNothingIsWrong) {
  StartClient();
  ExpectTheUndisturbedStream();
  EXPECT_GT(CameBy(GetParam()->name), 500);
}

TEST_P(TransportFaultTest, FlippedBitsAreFoundAndNeverTrainedOn) {
  constexpr int64_t kFlips = 12;
  proxies_[0]->FlipBits(250'000, kFlips);
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  ASSERT_NO_FATAL_FAILURE(Take(250));
  EXPECT_LT(proxies_[0]->flips_left(), kFlips);
  EXPECT_GT(client_->stats().batches_damaged, 0);
  ExpectTheUndisturbedStream();
  EXPECT_GT(CameBy(GetParam()->name), 0);
}

TEST_F(NetworkFaultTest, KilledAndStartedAgain) {
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  workers_[0]->Signal(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(Take(40));
  StartWorker(0);
  TakeUntilTheFirstWorkerServes("killed and started again");
  ExpectTheUndisturbedStream();
}

TEST_F(NetworkFaultTest, FrozenAndContinued) {
  StartClient();
  TakeUntilTheFirstWorkerServes("start");
  workers_[0]->Signal(SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(Take(60));
  workers_[0]->Signal(SIGCONT);
  TakeUntilTheFirstWorkerServes("continued");
  ExpectTheUndisturbedStream();
}

feed::Transports OfNetworks() {
  feed::Transports transports = feed::EveryTransport();
  std::erase_if(transports,
                [](const feed::Transport* one) { return !one->fits("127.0.0.1:7080"); });
  return transports;
}

INSTANTIATE_TEST_SUITE_P(Every, TransportFaultTest, ::testing::ValuesIn(OfNetworks()),
                         testing::TransportName);

}  // namespace
}  // namespace hetero
