#include "tests/integration/findings/disturbance.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

extern char** environ;

namespace hetero::testing {
namespace {

struct CoreTime {
  int64_t all = 0, idle = 0;  // ticks
};

CoreTime ReadCoreTime() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  file >> cpu;
  CoreTime time;
  constexpr int kIdle = 3, kWaiting = 4, kFields = 8;
  for (int field = 0; field < kFields; ++field) {
    int64_t ticks = 0;
    file >> ticks;
    time.all += ticks;
    if (field == kIdle || field == kWaiting) time.idle += ticks;
  }
  return time;
}

}  // namespace

double BusyShareOfMachine() {
  const CoreTime before = ReadCoreTime();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // a rate has no event to wait for
  const CoreTime after = ReadCoreTime();
  const auto all = static_cast<double>(after.all - before.all);
  return all > 0 ? 1 - static_cast<double>(after.idle - before.idle) / all : 0;
}

StopPulses::StopPulses(pid_t pid, std::chrono::milliseconds period, std::chrono::milliseconds runs)
    : pid_(pid), thread_([pid, period, runs](const std::stop_token& stop) {
        // A rhythm is what this is: there is no event to wait for.
        while (!stop.stop_requested()) {
          kill(pid, SIGSTOP);
          std::this_thread::sleep_for(period - runs);
          kill(pid, SIGCONT);
          std::this_thread::sleep_for(runs);
        }
      }) {}

StopPulses::~StopPulses() {
  thread_.request_stop();
  thread_.join();
  kill(pid_, SIGCONT);
}

Neighbours::Neighbours(int count) {
  std::string shell = "sh", flag = "-c", code = "while :; do :; done";
  const std::array<char*, 4> words = {shell.data(), flag.data(), code.data(), nullptr};
  for (int i = 0; i < count; ++i) {
    pid_t pid = -1;
    if (posix_spawn(&pid, "/bin/sh", nullptr, nullptr, words.data(), environ) != 0) {
      throw std::runtime_error("cannot start /bin/sh");
    }
    pids_.push_back(pid);
  }
}

Neighbours::~Neighbours() {
  for (const pid_t pid : pids_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

WrongClock::WrongClock(std::chrono::nanoseconds offset, std::string member)
    : member_(std::move(member)) {
  // struct Machine of bad_machine.cpp.
  const std::array<int64_t, 3> switches = {offset.count(), 0, 0};
  std::string bytes(sizeof switches, '\0');
  std::memcpy(bytes.data(), switches.data(), sizeof switches);
  folder_.Write("machine", bytes);
}

std::vector<std::string> WrongClock::environment() const {
  return {std::string("LD_PRELOAD=") + HETERO_BAD_MACHINE,
          "HETERO_CHAOS_MACHINE=" + (folder_ / "machine"), "HETERO_CHAOS_MEMBER=" + member_};
}

OnCores::OnCores(int count) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) throw std::runtime_error("no affinity");
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&some) < count; ++core) {
    if (CPU_ISSET(core, &before_)) CPU_SET(core, &some);
  }
  if (sched_setaffinity(0, sizeof some, &some) != 0) throw std::runtime_error("no such cores");
}

OnCores::~OnCores() { sched_setaffinity(0, sizeof before_, &before_); }

}  // namespace hetero::testing
