#include "runtime/source/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

TEST(InParallelTest, EachIsDoneOnce) {
  std::vector<std::atomic<int>> done(1000);
  EXPECT_TRUE(InParallel(done.size(), [&](size_t i) {
                ++done[i];
                return absl::OkStatus();
              }).ok());
  for (const auto& times : done) EXPECT_EQ(times, 1);
  EXPECT_TRUE(InParallel(0, [](size_t) { return absl::InternalError("none"); }).ok());
}

TEST(InParallelTest, TheErrorIsTheFirstInOrder) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<int> begun = 0;
    const absl::Status status = InParallel(100000, [&](size_t i) {
      ++begun;
      return i % 10 == 7 ? absl::InternalError(absl::StrCat(i)) : absl::OkStatus();
    });
    EXPECT_EQ(status.message(), "7");
    EXPECT_LT(begun, 100000);
  }
}

}  // namespace
}  // namespace hetero::source
