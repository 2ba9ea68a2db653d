#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <string_view>

#include "cli/screen.h"

namespace hetero::cli {

// The terminal on standard output while a screen is kept up to date on it: what is typed is not
// shown. The destructor brings the echo back. At most one at a time.
class Terminal {
 public:
  explicit Terminal(const std::string& otherwise = "--once");  // as Screen
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool Available();  // standard output is a terminal that understands cursor movement
  static bool Coloured();   // it is a terminal, and NO_COLOR is unset
  static Size CurrentSize();
  // As Screen; nothing while the process is in the background.
  // False when it cannot be written.
  bool Draw(std::string_view text);
  bool Finish(std::string_view text);
  // For a process that ends without destructors.
  static void Restore();

 private:
  // Turns the echo off, again after a shell had the terminal in between: then what was there is
  // the shell's, and a new screen begins.
  void Claim();
  const std::string otherwise_;
  Screen screen_;
};

// To standard output, at once; false when nobody reads it any more.
bool Print(std::string_view text);

}  // namespace hetero::cli
