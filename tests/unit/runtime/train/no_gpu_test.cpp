#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/device/device.h"

namespace hetero::train {
namespace {

// gpusPerReplica is 1 by default and this is the default image, so the message is read often.
TEST(NoGpuTest, TheMessageNamesTheImageThatIsNeeded) {
  const absl::StatusOr<std::unique_ptr<Device>> gpu = OpenGpu();
  ASSERT_FALSE(gpu.ok());
  EXPECT_THAT(std::string(gpu.status().message()),
              ::testing::AllOf(::testing::HasSubstr("hetero-trainer:<version>-cuda"),
                               ::testing::HasSubstr("gpusPerReplica: 0")));
}

}  // namespace
}  // namespace hetero::train
