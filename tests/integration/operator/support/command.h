#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace hetero::testing {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string output;  // standard output and error together
};

// Runs a program of the PATH with `input` on its standard input. A deadline that passes kills it:
// exit code 137.
CommandResult RunCommand(const std::vector<std::string>& arguments, const std::string& input = "",
                         std::chrono::seconds deadline = std::chrono::seconds(60));

// A program in the background with its output in a file. The destructor kills it.
class BackgroundProgram {
 public:
  BackgroundProgram(std::vector<std::string> arguments, std::string log_file,
                    const std::vector<std::string>& environment = {});
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void Signal(int signal);
  // Exit code as in CommandResult; -1 when it still runs at the deadline.
  int Wait(std::chrono::seconds deadline);
  std::string log() const;

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::string log_file_;
};

}  // namespace hetero::testing
