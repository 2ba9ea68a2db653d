#pragma once

#include <string>

namespace hetero::cli {

// A screen that is drawn over and over on standard output. The cursor is hidden while this lives
// and comes back with the destructor; what was drawn last stays.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool Available();  // standard output is a terminal
  int width() const;
  void Draw(const std::string& screen);

 private:
  int lines_ = 0;  // of the last screen
};

// To standard output, at once.
void Print(const std::string& text);

}  // namespace hetero::cli
