#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/cli/virtual_screen.h"

namespace hetero::testing {

// A program on a terminal of its own, and a person before it. The destructor kills it.
class PtyProgram {
 public:
  PtyProgram(std::vector<std::string> arguments, int columns, int rows,
             std::vector<std::string> environment = {});
  ~PtyProgram();
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;

  void Type(const std::string& keys);
  // As when a window is dragged: the screen changes and the program gets SIGWINCH.
  void Resize(int columns, int rows);
  // What the terminal shows now.
  VirtualScreen screen() const;
  std::string text() const { return screen().Text(); }
  // Whether the terminal shows what is typed.
  bool echoes() const;
  // Exit code, 128 + signal, or -1 when it still runs at the deadline. All output is read then.
  int Wait(std::chrono::seconds deadline);

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  bool ended_ = false;
  int status_ = 0;
  mutable std::mutex mutex_;  // guards screen_
  VirtualScreen screen_;
  std::thread reader_;
};

}  // namespace hetero::testing
