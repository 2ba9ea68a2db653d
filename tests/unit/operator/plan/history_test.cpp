#include "tests/unit/operator/plan/history.h"

#include <gtest/gtest.h>

namespace hetero::plan {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLives = 500, kManyLives = 1'000;
#else
constexpr int kLives = 2'000, kManyLives = 10'000;
#endif

// Whatever happens, and whatever the operator misses: the plans lead to an end, count each failure
// once, delete no living pod without a stored reason and leave nothing behind.
void Live(int lives) {
  int wrong = 0, succeeded = 0, failed = 0, restarted = 0;
  for (int seed = 1; seed <= lives && wrong < 3; ++seed) {
    History history(seed, /*traced=*/false);
    const std::optional<std::string> broken = history.Run();
    succeeded += history.status().Is(api::ConditionType::kSucceeded) ? 1 : 0;
    failed += history.status().Is(api::ConditionType::kFailed) ? 1 : 0;
    restarted += history.status().restarts > 0 ? 1 : 0;
    if (!broken) continue;
    ++wrong;
    History again(seed, /*traced=*/true);
    again.Run();
    ADD_FAILURE() << "seed " << seed << ": " << *broken << "\n" << again.Trace();
  }
  // Both ends, and restarts on the way to them, are common; otherwise this test tests nothing.
  EXPECT_GT(succeeded, lives / 5);
  EXPECT_GT(failed, lives / 10);
  EXPECT_GT(restarted, lives / 10);
}

TEST(HistoryTest, Lives) { Live(kLives); }
TEST(HistoryTest, ManyLives) { Live(kManyLives); }

}  // namespace
}  // namespace hetero::plan
