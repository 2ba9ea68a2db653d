#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetero::testing {

// What a terminal of this size would show after these bytes: the part of ECMA-48 that the command
// line may use, with the wrapping and scrolling of a VT100. Anything else in the stream is kept in
// unknown().
class VirtualScreen {
 public:
  VirtualScreen(int columns, int rows) : columns_(columns), rows_(rows), lines_(1) {}

  void Feed(std::string_view bytes);
  // Lines that are too long are cut, as by xterm.
  void Resize(int columns, int rows);

  // What is visible, without spaces at the ends of lines nor empty lines at the end.
  std::string Text() const;
  // The same with all that has scrolled out at the top.
  std::string History() const;
  bool cursor_visible() const { return cursor_visible_; }
  bool wraps() const { return wraps_; }
  // Lines that were longer than the screen and went on in the next one.
  int wrapped() const { return wrapped_; }
  bool coloured() const { return coloured_; }  // any colour was ever set
  const std::string& unknown() const { return unknown_; }

 private:
  using Line = std::vector<std::string>;  // a character in each cell
  size_t top() const;                     // first visible line
  Line& current();
  void Put(std::string_view character);
  void NewLine();
  void Control(std::string_view parameters, char final);

  int columns_;
  int rows_;
  std::vector<Line> lines_;
  size_t row_ = 0;  // of lines_
  int column_ = 0;
  bool cursor_visible_ = true;
  bool wraps_ = true;
  bool coloured_ = false;
  int wrapped_ = 0;
  std::string pending_;  // an unfinished sequence or character
  std::string unknown_;
};

}  // namespace hetero::testing
