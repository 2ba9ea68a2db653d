#include "runtime/train/rank_comparison.h"

#include <gtest/gtest.h>

#include "base/fake_clock.h"

namespace hetero::train {
namespace {

// Each look at it takes a while.
class SlowClock : public base::FakeClock {
 public:
  explicit SlowClock(base::Duration pace) : pace_(pace) {}
  base::Instant Now() const override { return FakeClock::Now() + ++looks_ * pace_; }

 private:
  const base::Duration pace_;
  mutable int looks_ = 0;
};

class EmptyModel : public Model {
 public:
  torch::Tensor forward(torch::Tensor images) override { return images; }
};

TEST(RankComparisonTest, IsDueEveryFiveMinutes) {
  base::FakeClock clock;
  EmptyModel model;
  Agreement alone(nullptr, 0, 1);
  RankComparison::Schedule schedule(clock);
  RankComparison comparison(model, 1, alone, schedule);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(comparison.IsDue());
    clock.Advance(std::chrono::seconds(299));
    EXPECT_FALSE(comparison.IsDue());
    clock.Advance(std::chrono::seconds(1));
    EXPECT_TRUE(comparison.IsDue());
    EXPECT_TRUE(comparison.Compare("now").ok());
  }
}

TEST(RankComparisonTest, TakesNoMoreThanAThousandthOfTheTime) {
  SlowClock clock(std::chrono::seconds(2));  // so much takes one of them
  EmptyModel model;
  Agreement alone(nullptr, 0, 1);
  RankComparison::Schedule schedule(clock);
  RankComparison comparison(model, 1, alone, schedule);
  EXPECT_TRUE(comparison.Compare("now").ok());
  clock.Advance(std::chrono::seconds(1990));
  EXPECT_FALSE(comparison.IsDue());
  clock.Advance(std::chrono::seconds(10));
  EXPECT_TRUE(comparison.IsDue());
}

}  // namespace
}  // namespace hetero::train
