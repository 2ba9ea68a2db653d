#include "runtime/feed/wait_causes.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "runtime/feed/busy_meter.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;

base::Instant At(int ms) { return base::Instant(milliseconds(1000 + ms)); }

TEST(WaitJournal, SplitsOneWaitByItsCauses) {
  WaitJournal journal(At(0));
  journal.OnWaitBegan(At(0));
  journal.OnWorkers(1, At(100));            // until then nobody could serve
  journal.OnStarted(1, 0, At(120));         // 20 ms in its queue
  journal.OnArrived(1, 0, 0.050, At(200));  // 50 ms of work, 30 ms on the way
  const WaitCauses causes = journal.OnWaitEnded(0, At(205));
  EXPECT_NEAR(causes.no_worker, 0.100, 1e-9);
  EXPECT_NEAR(causes.workers, 0.070, 1e-9);
  EXPECT_NEAR(causes.transfer, 0.030, 1e-9);
  EXPECT_NEAR(causes.handover, 0.005, 1e-9);
  EXPECT_NEAR(causes.total(), 0.205, 1e-9);
}

TEST(WaitJournal, OnlyWhatLiesInsideTheWaitCounts) {
  WaitJournal journal(At(0));
  journal.OnWorkers(2, At(0));
  journal.OnStarted(1, 3, At(10));
  journal.OnWaitBegan(At(80));  // the batch has been on its way since 60
  journal.OnArrived(1, 3, 0.050, At(100));
  const WaitCauses causes = journal.OnWaitEnded(3, At(100));
  EXPECT_NEAR(causes.transfer, 0.020, 1e-9);
  EXPECT_NEAR(causes.total(), 0.020, 1e-9);
}

TEST(WaitJournal, LongerWorkThanTheTimeSinceItsBeginIsNoTransfer) {
  WaitJournal journal(At(0));
  journal.OnWorkers(1, At(0));
  journal.OnWaitBegan(At(0));
  journal.OnStarted(1, 0, At(40));  // the word that it had begun came late
  journal.OnArrived(1, 0, 0.090, At(100));
  EXPECT_NEAR(journal.OnWaitEnded(0, At(100)).workers, 0.100, 1e-9);
}

TEST(WaitJournal, TheOneThatFilledThePlaceDecides) {
  WaitJournal journal(At(0));
  journal.OnWorkers(2, At(0));
  journal.OnWaitBegan(At(0));
  journal.OnStarted(1, 0, At(0));    // hangs
  journal.OnStarted(2, 0, At(300));  // issued again
  journal.OnArrived(2, 0, 0.100, At(450));
  const WaitCauses causes = journal.OnWaitEnded(0, At(450));
  EXPECT_NEAR(causes.workers, 0.400, 1e-9);
  EXPECT_NEAR(causes.transfer, 0.050, 1e-9);
}

TEST(WaitJournal, AWaitThatWasCutShortIsStillExplained) {
  WaitJournal journal(At(0));
  journal.OnWorkers(1, At(0));
  journal.OnWaitBegan(At(0));
  EXPECT_NEAR(journal.OnWaitEnded(0, At(70)).workers, 0.070, 1e-9);
  journal.OnWorkers(0, At(70));
  journal.OnWaitBegan(At(100));
  EXPECT_NEAR(journal.OnWaitEnded(0, At(170)).no_worker, 0.070, 1e-9);
}

TEST(BusyMeter, CountsTimeWithAtLeastOneTicket) {
  base::FakeClock clock;
  BusyMeter meter(clock);
  clock.Advance(milliseconds(500));
  EXPECT_EQ(meter.seconds(), 0);
  meter.OnAccepted();
  clock.Advance(milliseconds(100));
  meter.OnAccepted();
  clock.Advance(milliseconds(100));
  EXPECT_NEAR(meter.seconds(), 0.2, 1e-9);
  meter.OnDone();
  clock.Advance(milliseconds(100));
  meter.OnDone();
  clock.Advance(milliseconds(500));
  EXPECT_NEAR(meter.seconds(), 0.3, 1e-9);
}

}  // namespace
}  // namespace hetero::feed
