#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace hetero::cli {

struct Size {
  int columns = 80;
  int rows = 24;
  bool operator==(const Size&) const = default;
};

// A text that is drawn over and over at the bottom of a terminal: the bytes that do it. Whatever
// the text is, nothing wraps and nothing scrolls out of reach. Pure.
class Screen {
 public:
  // `otherwise`: which way of calling the program shows what does not fit.
  explicit Screen(std::string otherwise = "--once") : otherwise_(std::move(otherwise)) {}
  // In place of what was drawn before. Lines that do not fit the terminal's height are left out,
  // and their number is said in the last line.
  std::string Draw(std::string_view text, Size size);
  // The same, whole, for the last time: it stays and may scroll.
  std::string Finish(std::string_view text, Size size);

 private:
  std::string Replace(std::string_view text, Size size);
  std::string otherwise_;
  int rows_ = 0;  // of what is shown
  Size size_;
};

}  // namespace hetero::cli
