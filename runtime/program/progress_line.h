#pragma once

#include <chrono>
#include <string>

namespace hetero::commands {

// How far a command is, on standard error: one line that is written over on a terminal, and a line
// every ten seconds elsewhere. Of one thread at a time.
class ProgressLine {
 public:
  ProgressLine();

  // `last`: nothing comes after it.
  void Show(const std::string& text, bool last);
  // What comes next begins a line.
  void End();
  // Since the command began.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_ - std::chrono::hours(1);
  bool open_ = false;
};

}  // namespace hetero::commands
