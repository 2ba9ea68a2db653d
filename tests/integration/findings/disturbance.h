#pragma once

#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

// What befalls a job from outside while it runs. All end with the objects.
namespace hetero::testing {

class Disturbance {
 public:
  virtual ~Disturbance() = default;
};

// A process that runs `runs` of each `period` and is stopped for the rest of it.
class StopPulses : public Disturbance {
 public:
  StopPulses(pid_t pid, std::chrono::milliseconds period, std::chrono::milliseconds runs);
  ~StopPulses() override;

 private:
  const pid_t pid_;
  std::jthread thread_;
};

// Processes that compute all the time.
class Neighbours : public Disturbance {
 public:
  explicit Neighbours(int count);
  ~Neighbours() override;

 private:
  std::vector<pid_t> pids_;
};

// A machine with a wall clock of its own (tests/chaos/bad_machine.cpp), and one member on it:
// "cpu-1".
class WrongClock {
 public:
  WrongClock(std::chrono::nanoseconds offset, std::string member);

  // For all programs of the job.
  std::vector<std::string> environment() const;

 private:
  const std::string member_;
  TemporaryFolder folder_;
};

// The share of this machine's cores that are in use, 0..1, looked at for a second.
double BusyShareOfMachine();

// This thread and the processes that it starts run on `count` cores of those that it may use, as
// long as this object lives: a CPU worker then has as many threads on every machine.
class OnCores {
 public:
  static constexpr int kAll = CPU_SETSIZE;
  explicit OnCores(int count);
  ~OnCores();

 private:
  cpu_set_t before_;
};

}  // namespace hetero::testing
