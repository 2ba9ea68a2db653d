#include "operator/reconcile/announcement_pacer.h"

#include <gtest/gtest.h>

namespace hetero::reconcile {
namespace {

using std::chrono::milliseconds;

constexpr base::Duration kAtOnce = base::Duration::zero();

base::Instant At(int64_t ms) { return base::Instant() + milliseconds(1'000'000 + ms); }

TEST(AnnouncementPacerTest, TheFirstChangeIsAnnouncedAtOnce) {
  AnnouncementPacer pacer;
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(0)), kAtOnce);
}

TEST(AnnouncementPacerTest, OneAnnouncementPerPeriodTellsAllThatChangedInIt) {
  AnnouncementPacer pacer;
  pacer.Changed(/*urgent=*/false, At(0));
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(50)), milliseconds(150));
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(60)), std::nullopt);
  pacer.AnnouncedLate(At(200));
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(399)), milliseconds(1));
}

TEST(AnnouncementPacerTest, APeriodWithoutChangesIsNotOwed) {
  AnnouncementPacer pacer;
  pacer.Changed(/*urgent=*/false, At(0));
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(200)), kAtOnce);
}

TEST(AnnouncementPacerTest, UrgentChangesAreAnnouncedAtOnceAndBeginAPeriod) {
  AnnouncementPacer pacer;
  pacer.Changed(/*urgent=*/false, At(0));
  EXPECT_EQ(pacer.Changed(/*urgent=*/true, At(10)), kAtOnce);
  EXPECT_EQ(pacer.Changed(/*urgent=*/false, At(20)), milliseconds(190));
}

// A head that changes its state with each message would cost as many writes.
TEST(AnnouncementPacerTest, AHeadWhoseEveryWordIsUrgentIsNotAnnouncedWithEachOfThem) {
  AnnouncementPacer pacer;
  int at_once = 0;
  for (int ms = 0; ms < 10'000; ms += 10) {
    at_once += pacer.Changed(/*urgent=*/true, At(ms)) == kAtOnce;
  }
  EXPECT_LE(at_once, 10'000 / 200 + AnnouncementPacer::kUrgentInARow);
  EXPECT_GE(at_once, 10'000 / 200 - 1);
}

}  // namespace
}  // namespace hetero::reconcile
