#include "runtime/program/progress_line.h"

#include <unistd.h>

#include <iostream>

namespace hetero::commands {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Show(const std::string& text, bool last) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ && !last && now - shown_ < std::chrono::seconds(10)) return;
  shown_ = now;
  std::cerr << (terminal_ ? "\r\033[K" : "") << text << (terminal_ ? "" : "\n") << std::flush;
  open_ = terminal_;
}

void ProgressLine::End() {
  if (open_) std::cerr << "\n";
  open_ = false;
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

}  // namespace hetero::commands
