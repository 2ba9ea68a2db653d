#include "tests/bench/operator_scale/measures.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hetero::bench {
namespace {

using testing::ControlPlane;

constexpr double kStreamKib = 100;

}  // namespace

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

int64_t ProcessStatus(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1));
  }
  return 0;
}

double ResidentMib(pid_t pid) { return static_cast<double>(ProcessStatus(pid, "VmRSS")) / 1024; }
double PeakMib(pid_t pid) { return static_cast<double>(ProcessStatus(pid, "VmHWM")) / 1024; }

double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (text.empty()) return 0;
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void MakeNamespaces(const std::vector<std::string>& names) {
  ControlPlane& plane = ControlPlane::Get();
  for (const std::string& name : names) plane.MustKubectl({"create", "namespace", name});
  for (const std::string& name : names) {
    testing::WaitFor("the default ServiceAccount", [&] {
      return !plane.Object({"", "v1", "serviceaccounts", true}, {name, "default"}).is_null();
    });
  }
}

void InParallel(int count, int clients, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < clients; ++t) {
    threads.emplace_back([&] {
      for (int i; (i = next++) < count;) work(i);
    });
  }
}

testing::OperatorProcess::Options OperatorOptions(std::vector<std::string> arguments,
                                                  const std::string& server) {
  arguments.insert(arguments.begin(), "--no-leader-elect");
  return {.server = server, .arguments = std::move(arguments), .environment = {}};
}

MemoryWatch::MemoryWatch(testing::OperatorProcess& process)
    : thread_([this, &process](std::stop_token stop) {
        while (!stop.stop_requested()) {
          const double streams = process.Metric("hetero_head_streams");
          most_streams_ = std::max(most_streams_, streams);
          beyond_ = std::max(beyond_, ResidentMib(process.pid()) - streams * kStreamKib / 1024);
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
      }) {}

void MemoryWatch::Print() {
  thread_.request_stop();
  thread_.join();
  std::printf("at most %.0f live status streams; %.1f MiB resident beyond %.0f KiB for each\n",
              most_streams_, beyond_, kStreamKib);
}

}  // namespace hetero::bench
