#include "base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>

namespace hetero::base {
namespace {

absl::Status Pass(const absl::Status& status, int* reached) {
  HETERO_RETURN_IF_ERROR(status);
  ++*reached;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> Make(int value) {
  if (value < 0) return absl::OutOfRangeError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Make(a));
  std::unique_ptr<int> second;
  HETERO_ASSIGN_OR_RETURN(second, Make(b));
  return *first + *second;
}

TEST(StatusMacrosTest, ReturnIfErrorStopsAtErrors) {
  int reached = 0;
  EXPECT_TRUE(Pass(absl::OkStatus(), &reached).ok());
  EXPECT_EQ(Pass(absl::AbortedError("x"), &reached), absl::AbortedError("x"));
  EXPECT_EQ(reached, 1);
}

TEST(StatusMacrosTest, AssignOrReturnMovesTheValueOut) {
  EXPECT_EQ(*Sum(2, 3), 5);
  EXPECT_EQ(Sum(2, -1).status(), absl::OutOfRangeError("negative"));
  EXPECT_EQ(Sum(-2, 1).status(), absl::OutOfRangeError("negative"));
}

}  // namespace
}  // namespace hetero::base
