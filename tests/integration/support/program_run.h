#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace hetero::testing {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string output;  // standard output and error together
};

// One of the built programs, running. The destructor kills it.
class ProgramRun {
 public:
  // `program` is a file name in build/.../bin.
  ProgramRun(const std::string& program, std::vector<std::string> arguments,
             const std::vector<std::string>& environment = {});
  ~ProgramRun();

  void Signal(int signal);
  bool running();
  // Fails the test and kills the program when it has not ended by the deadline.
  ProgramResult Wait(std::chrono::seconds deadline);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  TemporaryFolder folder_;
};

// Starts and waits.
ProgramResult RunProgram(const std::string& program, std::vector<std::string> arguments,
                         std::chrono::seconds deadline = std::chrono::seconds(60));

// `hetero-runtime local` on a manifest in a folder of its own.
class LocalRun {
 public:
  LocalRun(const std::string& manifest, const std::vector<std::string>& arguments = {},
           const std::vector<std::string>& environment = {});

  ProgramRun& program() { return *program_; }
  ProgramResult Wait(std::chrono::seconds deadline = std::chrono::seconds(60)) {
    return program_->Wait(deadline);
  }
  // Pid of a member ("cpu-0"), waiting until it runs; after ten seconds one that no process has
  // (not -1, which kill() takes for all of them), and a failed test.
  pid_t PidOf(const std::string& name);
  // Waits until logs/<name>.log holds `text`; no longer than the program runs.
  bool WaitForLog(const std::string& name, const std::string& text,
                  std::chrono::seconds deadline = std::chrono::seconds(20));
  nlohmann::json report() const;
  std::string output() const { return folder_ / "out"; }
  std::string log(const std::string& name) const;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<ProgramRun> program_;
};

}  // namespace hetero::testing
