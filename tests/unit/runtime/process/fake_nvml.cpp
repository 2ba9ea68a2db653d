// Three GPUs, of which the second does not tell its power and the third nothing of its memory, with
// the functions of nvml.h that GpuReadings calls.
#include <cstdio>

namespace {
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
char devices[3];
constexpr int kNotSupported = 3;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  snprintf(name, length, "Fake %d", static_cast<int>(static_cast<char*>(device) - devices));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* out) {
  *out = {75, 10};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* out) {  // the last has none of its own
  *out = {80, 20, 60};
  return device == &devices[2] ? kNotSupported : 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 350500;
  return device == &devices[0] ? 0 : kNotSupported;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 61;
  return 0;
}
}
