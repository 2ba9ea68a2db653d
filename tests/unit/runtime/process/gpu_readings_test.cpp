#include "runtime/process/gpu_readings.h"

#include <gtest/gtest.h>

namespace hetero::process {
namespace {

TEST(GpuReadingsTest, ReadsEveryGpu) {
  const auto readings = GpuReadings::Open(HETERO_FAKE_NVML);
  ASSERT_NE(readings, nullptr);
  EXPECT_EQ(readings->Count(), 3);
  const std::vector<GpuReading> gpus = readings->Take();  // one does not answer
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].index, 0);
  EXPECT_EQ(gpus[0].name, "Fake 0");
  EXPECT_DOUBLE_EQ(gpus[0].utilization, 0.75);
  EXPECT_EQ(gpus[0].memory_used_bytes, 60);
  EXPECT_EQ(gpus[0].memory_total_bytes, 80);
  EXPECT_DOUBLE_EQ(gpus[0].power_watts, 350.5);
  EXPECT_EQ(gpus[0].temperature_celsius, 61);
  EXPECT_EQ(gpus[1].power_watts, 0);
}

TEST(GpuReadingsTest, AMachineWithoutADriverHasNone) {
  EXPECT_EQ(GpuReadings::Open("libhetero-does-not-exist.so"), nullptr);
  EXPECT_EQ(GpuReadings::Open("libm.so.6"), nullptr);  // no such functions
}

}  // namespace
}  // namespace hetero::process
