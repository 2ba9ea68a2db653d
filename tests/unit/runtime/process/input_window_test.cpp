#include "runtime/process/input_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::process {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;
constexpr int64_t kGi = int64_t{1} << 30;

int64_t Window(const InputWindowOptions& options) {
  const absl::StatusOr<int64_t> window = InputWindow(options);
  EXPECT_TRUE(window.ok()) << window.status();
  return window.value_or(-1);
}

TEST(InputWindowTest, WithoutALimitItIsWhatItAlwaysWas) { EXPECT_EQ(Window({}), 192 * kMi); }

TEST(InputWindowTest, IsATenthOfARanksPartOfTheMemory) {
  EXPECT_EQ(Window({.memory_limit = 10 * kGi}), kGi);
  EXPECT_EQ(Window({.memory_limit = 40 * kGi, .ranks = 8}), kGi / 2);
  EXPECT_EQ(Window({.memory_limit = kGi}), 192 * kMi);
  EXPECT_EQ(Window({.memory_limit = 500 * kGi, .ranks = 8}), 2 * kGi);
}

TEST(InputWindowTest, NeverTakesMoreThanAQuarterOfALittleMemory) {
  EXPECT_EQ(Window({.memory_limit = 512 * kMi}), 128 * kMi);
  EXPECT_EQ(Window({.memory_limit = 2 * kGi, .ranks = 8}), 64 * kMi);
}

TEST(InputWindowTest, HasRoomForTwoBatches) {
  EXPECT_EQ(Window({.batch_bytes = 150 * kMi}), 300 * kMi);
  EXPECT_EQ(Window({.memory_limit = 64 * kMi, .batch_bytes = 20 * kMi}), 40 * kMi);
  EXPECT_EQ(Window({.wanted = "1Mi", .batch_bytes = 20 * kMi}), 40 * kMi);
}

TEST(InputWindowTest, IsWhatIsWanted) {
  EXPECT_EQ(Window({.wanted = "16Mi"}), 16 * kMi);
  EXPECT_EQ(Window({.wanted = "8Gi"}), 8 * kGi);
  EXPECT_EQ(Window({.wanted = "4Gi", .memory_limit = 64 * kGi, .ranks = 8}), 4 * kGi);
}

TEST(InputWindowTest, MoreThanHalfOfTheMemoryIsRefused) {
  const absl::Status status =
      InputWindow({.wanted = "5Gi", .memory_limit = 64 * kGi, .ranks = 8}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "spec.training.inputWindow: 5Gi for each of 8 ranks that share a memory limit of "
            "65536Mi is more than half of it; make it at most 4096Mi, or raise "
            "resources.limits.memory of the GPUWorker's container");
}

}  // namespace
}  // namespace hetero::process
