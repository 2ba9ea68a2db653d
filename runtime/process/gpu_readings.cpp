#include "runtime/process/gpu_readings.h"

#include <dlfcn.h>

#include <utility>

namespace hetero::process {
namespace {

// From nvml.h, whose layouts are the same in every version of the driver.
using NvmlDevice = void*;
struct NvmlUtilization {
  unsigned gpu, memory;  // per cent
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr int kTemperatureOfGpu = 0;
constexpr unsigned kNameBytes = 96;

}  // namespace

struct GpuReadings::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;  // milliwatts
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;

  bool Load(void* library) {
    const auto load = [library](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    return load(init, "nvmlInit_v2") && load(shutdown, "nvmlShutdown") &&
           load(count, "nvmlDeviceGetCount_v2") && load(handle, "nvmlDeviceGetHandleByIndex_v2") &&
           load(name, "nvmlDeviceGetName") && load(utilization, "nvmlDeviceGetUtilizationRates") &&
           load(memory, "nvmlDeviceGetMemoryInfo") && load(power, "nvmlDeviceGetPowerUsage") &&
           load(temperature, "nvmlDeviceGetTemperature");
  }

  std::optional<GpuReading> Read(unsigned index) const {
    NvmlDevice device = nullptr;
    char text[kNameBytes] = {};
    NvmlUtilization busy{};
    NvmlMemory bytes{};
    if (handle(index, &device) != kSuccess || memory(device, &bytes) != kSuccess) {
      return std::nullopt;
    }
    GpuReading reading{.index = static_cast<int>(index),
                       .memory_used_bytes = static_cast<int64_t>(bytes.used),
                       .memory_total_bytes = static_cast<int64_t>(bytes.total)};
    if (name(device, text, kNameBytes - 1) == kSuccess) reading.name = text;
    if (utilization(device, &busy) == kSuccess) reading.utilization = busy.gpu / 100.0;
    unsigned value = 0;
    if (power(device, &value) == kSuccess) reading.power_watts = value / 1000.0;
    if (temperature(device, kTemperatureOfGpu, &value) == kSuccess) {
      reading.temperature_celsius = value;
    }
    return reading;
  }
};

std::unique_ptr<GpuReadings> GpuReadings::Open(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->Load(handle) || functions->init() != kSuccess) return nullptr;
  return std::unique_ptr<GpuReadings>(new GpuReadings(std::move(functions)));
}

GpuReadings::GpuReadings(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

GpuReadings::~GpuReadings() { functions_->shutdown(); }

int GpuReadings::Count() const {
  unsigned count = 0;
  return functions_->count(&count) == kSuccess ? static_cast<int>(count) : 0;
}

std::vector<GpuReading> GpuReadings::Take() const {
  std::vector<GpuReading> readings;
  const auto count = static_cast<unsigned>(Count());
  for (unsigned i = 0; i < count; ++i) {
    if (auto reading = functions_->Read(i)) readings.push_back(*std::move(reading));
  }
  return readings;
}

}  // namespace hetero::process
