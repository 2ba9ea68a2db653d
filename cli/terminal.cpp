#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace hetero::cli {
namespace {

// Set by the constructor of the only Terminal, taken back once.
std::atomic<bool> echo_off = false;
termios before;

// Changing a terminal from the background would stop the process.
bool InForeground() { return isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

bool Dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

}  // namespace

Terminal::Terminal(const std::string& otherwise) : otherwise_(otherwise), screen_(otherwise) {
  Claim();
}

Terminal::~Terminal() { Restore(); }

void Terminal::Restore() {
  if (echo_off.exchange(false) && InForeground()) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

bool Terminal::Available() { return isatty(STDOUT_FILENO) == 1 && !Dumb(); }

bool Terminal::Coloured() {
  const char* no_colour = std::getenv("NO_COLOR");
  return Available() && (no_colour == nullptr || *no_colour == '\0');
}

Size Terminal::CurrentSize() {
  winsize size{};
  Size result;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return result;
  if (size.ws_col > 0) result.columns = size.ws_col;
  if (size.ws_row > 0) result.rows = size.ws_row;
  return result;
}

void Terminal::Claim() {
  termios now;
  if (!InForeground() || tcgetattr(STDIN_FILENO, &now) != 0 || (now.c_lflag & ECHO) == 0) return;
  if (echo_off) screen_ = Screen(otherwise_);
  before = now;
  now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  echo_off = tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

bool Terminal::Draw(std::string_view text) {
  if (isatty(STDIN_FILENO) == 1 && !InForeground()) return true;
  Claim();
  return Print(screen_.Draw(text, CurrentSize()));
}

bool Terminal::Finish(std::string_view text) { return Print(screen_.Finish(text, CurrentSize())); }

bool Print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

}  // namespace hetero::cli
