#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/operator/support/world.h"

namespace hetero::bench {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin);      // seconds
double Median(std::vector<double> values);  // 0 of none
double Largest(const std::vector<double>& values);

// A line of /proc/PID/status, in its own unit; 0 when the process is gone.
int64_t ProcessStatus(pid_t pid, const std::string& name);
double ResidentMib(pid_t pid);
double PeakMib(pid_t pid);
double CpuSeconds(pid_t pid);

// Namespaces with a default ServiceAccount.
void MakeNamespaces(const std::vector<std::string>& names);
// Calls work(i) for i in [0, count) from `clients` threads.
void InParallel(int count, int clients, const std::function<void(int)>& work);
// Starts the operator with the chart's defaults, and `arguments`.
testing::OperatorProcess::Options OperatorOptions(std::vector<std::string> arguments,
                                                  const std::string& server = "");

// What the operator holds at the worst, looked at five times a second: its resident memory, and
// that beyond what each live status stream may take.
class MemoryWatch {
 public:
  explicit MemoryWatch(testing::OperatorProcess& process);
  void Print();  // once

 private:
  double most_streams_ = 0, beyond_ = 0;
  std::jthread thread_;
};

}  // namespace hetero::bench
