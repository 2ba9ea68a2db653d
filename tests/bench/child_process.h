#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

namespace hetero::bench {

inline double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A number of /proc/self/status, such as "Threads:" and, in KiB, "VmHWM:".
inline int64_t OfStatus(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t value = 0;
    if (word == key && status >> value) return value;
  }
  return 0;
}

// A child process that sends until it is told to stop, and then says what CPU time it took. It ends
// with the bench, whose output would otherwise never end for whoever reads it.
class Child {
 public:
  // `body` gets the pipe to write its address to (a line), then serves until standard input ends.
  explicit Child(const std::function<void(int ready, int until)>& body) {
    int up[2], down[2];
    if (pipe(up) != 0 || pipe(down) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(up[0]);
      close(down[1]);
      body(up[1], down[0]);
      const double cpu = CpuSeconds();
      if (write(up[1], &cpu, sizeof cpu) != sizeof cpu) std::abort();
      _exit(0);
    }
    close(up[1]);
    close(down[0]);
    from_ = up[0];
    to_ = down[1];
  }
  std::string ReadLine() const {
    std::string line;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
  }
  // Sends it a byte, and reads what it answers. False: it has ended.
  bool Ask(void* answer, size_t size) const {
    return write(to_, "?", 1) == 1 && read(from_, answer, size) == static_cast<ssize_t>(size);
  }
  void Signal(int signal) const { kill(pid_, signal); }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  double StopAndCpuSeconds() {
    close(to_);
    double cpu = 0;
    if (read(from_, &cpu, sizeof cpu) != sizeof cpu) cpu = 0;
    waitpid(pid_, nullptr, 0);
    close(from_);
    return cpu;
  }

 private:
  pid_t pid_ = -1;
  int from_ = -1, to_ = -1;
};

}  // namespace hetero::bench
