#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hetero::cli {

Terminal::Terminal() { Print("\x1b[?25l"); }

Terminal::~Terminal() { Print("\x1b[?25h"); }

bool Terminal::Available() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

int Terminal::width() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Terminal::Draw(const std::string& screen) {
  std::string text;
  if (lines_ > 0) text += "\x1b[" + std::to_string(lines_) + "A";
  text += "\r\x1b[J" + screen;
  lines_ = static_cast<int>(std::count(screen.begin(), screen.end(), '\n'));
  Print(text);
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace hetero::cli
