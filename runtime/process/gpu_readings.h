#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hetero::process {

// What one GPU says of itself.
struct GpuReading {
  int index = 0;  // of NVML, which ignores CUDA_VISIBLE_DEVICES
  std::string name;
  double utilization = 0;  // share of the last second in which a kernel ran, 0..1
  int64_t memory_used_bytes = 0, memory_total_bytes = 0;
  double power_watts = 0;  // 0 when the GPU does not tell
  double temperature_celsius = 0;
};

// Readings from the driver's library (NVML), which is loaded at run time: a machine without it has
// no GPUs, and the program needs no GPU build for them. Thread-safe.
class GpuReadings {
 public:
  static constexpr char kLibrary[] = "libnvidia-ml.so.1";

  // Null when there is no driver. `library` is for tests.
  static std::unique_ptr<GpuReadings> Open(const char* library = kLibrary);
  ~GpuReadings();

  // Of the driver's GPUs, whether they answer or not.
  int Count() const;
  // One entry per GPU; a GPU that does not answer is left out.
  std::vector<GpuReading> Take() const;

 private:
  struct Functions;
  explicit GpuReadings(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace hetero::process
