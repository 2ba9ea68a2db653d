#pragma once

#include <functional>
#include <string>

namespace hetero::local {

// What head and trainers print, read by the launcher so that it never tears the status line. One
// thread uses it.
class OutputPipe {
 public:
  OutputPipe();
  ~OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  // For the children's standard output; -1 when no pipe could be made.
  int write_end() const { return ends_[1]; }
  // Hands every complete line that has arrived to `print`; never blocks.
  void Forward(const std::function<void(const std::string&)>& print);

 private:
  int ends_[2] = {-1, -1};
  std::string pending_;
};

}  // namespace hetero::local
