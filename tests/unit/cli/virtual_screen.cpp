#include "tests/unit/cli/virtual_screen.h"

#include <algorithm>
#include <cstdlib>

namespace hetero::testing {
namespace {

std::string TextOf(const std::vector<std::vector<std::string>>& lines, size_t from) {
  std::string text;
  for (size_t i = from; i < lines.size(); ++i) {
    std::string line;
    for (const std::string& cell : lines[i]) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  while (text.size() >= 2 && text.ends_with("\n\n")) text.pop_back();
  return text == "\n" ? "" : text;
}

size_t CharacterBytes(unsigned char first) {
  if (first < 0xC0) return 1;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

size_t VirtualScreen::top() const {
  return lines_.size() > static_cast<size_t>(rows_) ? lines_.size() - rows_ : 0;
}

VirtualScreen::Line& VirtualScreen::current() { return lines_[row_]; }

void VirtualScreen::NewLine() {
  if (++row_ == lines_.size()) lines_.emplace_back();
}

void VirtualScreen::Put(std::string_view character) {
  if (column_ == columns_) {
    if (wraps_) {
      ++wrapped_;
      NewLine();
      column_ = 0;
    } else {
      column_ = columns_ - 1;
    }
  }
  Line& line = current();
  if (line.size() <= static_cast<size_t>(column_)) line.resize(column_ + 1, " ");
  line[column_++] = character;
}

void VirtualScreen::Control(std::string_view parameters, char final) {
  const std::string text(parameters);
  const int count = std::max(std::atoi(text.c_str()), 1);
  if (final == 'm') {
    coloured_ |= !text.empty() && text != "0";
  } else if (final == 'A') {
    row_ = std::max(row_ >= static_cast<size_t>(count) ? row_ - count : 0, top());
  } else if (final == 'H' && text.empty()) {
    row_ = top();
    column_ = 0;
  } else if (final == 'J' && text == "2") {
    for (size_t i = top(); i < lines_.size(); ++i) lines_[i].clear();
  } else if (final == 'J' && text.empty()) {
    current().resize(std::min<size_t>(current().size(), column_), " ");
    for (size_t i = row_ + 1; i < lines_.size(); ++i) lines_[i].clear();
  } else if (final == 'K' && text == "2") {
    current().clear();
  } else if (text == "?25" && (final == 'h' || final == 'l')) {
    cursor_visible_ = final == 'h';
  } else if (text == "?7" && (final == 'h' || final == 'l')) {
    wraps_ = final == 'h';
  } else {
    unknown_ += "[" + text + final;
  }
}

void VirtualScreen::Feed(std::string_view bytes) {
  pending_ += bytes;
  size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    if (rest[0] == '\x1b') {
      if (rest.size() < 2) break;
      const size_t end = rest.find_first_not_of("0123456789;?", 2);
      if (rest[1] != '[') {
        unknown_ += rest.substr(1, 1);
        at += 2;
      } else if (end == std::string_view::npos) {
        break;
      } else {
        Control(rest.substr(2, end - 2), rest[end]);
        at += end + 1;
      }
    } else if (rest[0] == '\n') {
      NewLine();
      ++at;
    } else if (rest[0] == '\r') {
      column_ = 0;
      ++at;
    } else {
      const size_t size = CharacterBytes(rest[0]);
      if (rest.size() < size) break;
      if (static_cast<unsigned char>(rest[0]) < ' ') {
        unknown_ += rest[0];
      } else {
        Put(rest.substr(0, size));
      }
      at += size;
    }
  }
  pending_.erase(0, at);
}

void VirtualScreen::Resize(int columns, int rows) {
  columns_ = columns;
  rows_ = rows;
  for (Line& line : lines_) line.resize(std::min<size_t>(line.size(), columns));
  column_ = std::min(column_, columns);
  row_ = std::max(row_, top());
}

std::string VirtualScreen::Text() const { return TextOf(lines_, top()); }

std::string VirtualScreen::History() const { return TextOf(lines_, 0); }

}  // namespace hetero::testing
