#include "runtime/compare/shown_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace hetero::compare {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string ShownText(std::string_view text, size_t columns) {
  // No character has more than four bytes.
  std::string shown = base::ToUtf8(text.substr(0, 4 * columns + 4));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  // C1 control characters, which terminals obey too: U+0080 to U+009F.
  for (size_t i = 0; i + 1 < shown.size(); ++i) {
    if (shown[i] == '\xC2' && static_cast<unsigned char>(shown[i + 1]) < 0xA0) {
      shown.replace(i, 2, " ");
    }
  }
  if (ColumnsOf(shown) <= columns && text.size() <= 4 * columns + 4) return shown;
  size_t kept = 0;
  size_t end = 0;
  while (end < shown.size() && (kept < columns - 3 || Continues(shown[end]))) {
    if (!Continues(shown[end])) ++kept;
    ++end;
  }
  return shown.substr(0, end) + "...";
}

size_t ColumnsOf(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string PaddedRight(std::string text, size_t columns) {
  const size_t own = ColumnsOf(text);
  if (own < columns) text.append(columns - own, ' ');
  return text;
}

std::string PaddedLeft(const std::string& text, size_t columns) {
  const size_t own = ColumnsOf(text);
  return own < columns ? std::string(columns - own, ' ') + text : text;
}

}  // namespace hetero::compare
