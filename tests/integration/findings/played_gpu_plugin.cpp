// A GPU that is played: one file that is the driver's library (NVML) and a model's plugin at once.
// The model's forward pass lasts as its name says, and its kernels are busy and its memory is used
// as the driver then tells. Everything behind the driver is the real thing: reading, sampling,
// sending, judging.
//   kernel_24_750   24 ms of other things in a step, then a kernel of 750 us a sample
//   full_12_700     the same, and the memory is nearly full
//   growing_1_2500  the same, and each step keeps some of it
//   unequal_2_900   of the replicas of the role all but the first have a GPU six times as fast, and
//                   wait as much longer for something else
//   disk_20_20      its other things are writing to a disk, without an end
//   onecore_1_200   the process may use one core
// HETERO_PLAYED_GPU=pulses: busy for three seconds and nearly idle for two, whatever is trained.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "hetero/model_plugin.h"

namespace {

namespace nn = torch::nn;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr unsigned long long kGib = 1ULL << 30;
constexpr unsigned long long kMemory = 80 * kGib;
constexpr int64_t kTimesFaster = 6;

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Of the one GPU of the process.
std::atomic<int64_t> busy_ns = 0;
std::atomic<int64_t> kernel_since = 0;  // 0: none runs
std::atomic<unsigned long long> used_bytes = 0;

bool Is(const char* variable, const char* value) {
  const char* given = std::getenv(variable);
  return given != nullptr && std::strcmp(given, value) == 0;
}

void Compute(microseconds duration) {
  const int64_t begin = Now();
  kernel_since = begin;
  std::this_thread::sleep_for(duration);
  kernel_since = 0;
  busy_ns += Now() - begin;
}

// All threads that there are, and those that they will start.
void UseOneCore() {
  cpu_set_t usable, one;
  sched_getaffinity(0, sizeof usable, &usable);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &usable)) CPU_SET(core, &one);
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    sched_setaffinity(std::atoi(entry.path().filename().c_str()), sizeof one, &one);
  }
}

void WriteForEver(const std::stop_token& stop, int number) {
  std::string name =
      "/var/tmp/hetero-played-gpu-" + std::to_string(getpid()) + "-" + std::to_string(number);
  const int file = open(name.c_str(), O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
  unlink(name.c_str());
  const std::string block(size_t{1} << 20, 'x');
  while (file >= 0 && !stop.stop_requested()) {
    if (pwrite(file, block.data(), block.size(), 0) < 0 || fsync(file) != 0) break;
  }
  if (file >= 0) close(file);
}

class PlayedNet : public hetero::train::Model {
 public:
  PlayedNet(std::string kind, int64_t host_ms, int64_t kernel_us, int64_t inputs, int64_t classes)
      : kind_(std::move(kind)),
        host_(host_ms),
        kernel_(kernel_us),
        head_(register_module("head", nn::Linear(inputs, classes))) {
    used_bytes = (kind_ == "full" ? 60 : 10) * kGib;
    const char* index = std::getenv("HETERO_INDEX");
    if (kind_ == "unequal" && index != nullptr && std::strcmp(index, "0") != 0) faster_ = true;
    if (kind_ == "disk") {
      for (int i = 0; i < 2; ++i) {
        writers_.emplace_back([i](std::stop_token stop) { WriteForEver(stop, i); });
      }
    }
  }

  torch::Tensor forward(torch::Tensor images) override {
    if (kind_ == "onecore") UseOneCore();
    if (kind_ == "growing") used_bytes += kGib / 20;
    const microseconds whole = kernel_ * images.size(0);
    const microseconds kernel = faster_ ? whole / kTimesFaster : whole;
    std::this_thread::sleep_for(host_ + (whole - kernel));
    Compute(kernel);
    return head_(images.flatten(1));
  }

 private:
  const std::string kind_;
  const milliseconds host_;
  const microseconds kernel_;
  bool faster_ = false;
  nn::Linear head_;
  std::vector<std::jthread> writers_;
};

std::shared_ptr<hetero::train::Model> Make(const hetero::train::PluginRequest& request) {
  char kind[16] = "";
  int host = 0, kernel = 0;
  std::sscanf(request.name.c_str(), "%15[a-z]_%d_%d", kind, &host, &kernel);
  return std::make_shared<PlayedNet>(kind, host, kernel,
                                     int64_t{request.height} * request.width * request.channels,
                                     request.classes);
}

struct Utilization {
  unsigned gpu, memory;  // per cent
};
struct Memory {
  unsigned long long total, free, used;
};

unsigned BusyPercent() {
  if (Is("HETERO_PLAYED_GPU", "pulses")) return Now() / 1'000'000'000 % 5 < 3 ? 95 : 20;
  static std::atomic<int64_t> asked_at = 0, busy_then = 0;
  const int64_t now = Now(), since = kernel_since;
  const int64_t busy = busy_ns + (since == 0 ? 0 : now - since);
  const int64_t span = now - asked_at.exchange(now), more = busy - busy_then.exchange(busy);
  if (span <= 0 || more <= 0) return 0;
  return static_cast<unsigned>(std::min<int64_t>(100, 100 * more / span));
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  *device = &busy_ns;
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "Played");
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* out) {
  *out = {BusyPercent(), 0};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  const unsigned long long used = std::min(used_bytes.load(), kMemory);
  *out = {kMemory, kMemory - used, used};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 300'000;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 60;
  return 0;
}
}

HETERO_MODEL_PLUGIN({"kernel_24_750", "kernel_1_2500", "kernel_1_600", "kernel_2_150",
                     "full_12_700", "growing_1_2500", "unequal_2_900", "disk_20_20",
                     "onecore_1_200"},
                    Make)
