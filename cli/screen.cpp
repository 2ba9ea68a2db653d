#include "cli/screen.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string Screen::Draw(std::string_view text, Size size) {
  const std::vector<std::string_view> lines = LinesOf(text);
  // The cursor rests in the line below the text.
  const size_t room = std::max(size.rows - 1, 1);
  if (lines.size() <= room) return Replace(text, size);
  std::string fitting;
  for (size_t i = 0; i + 1 < room; ++i) absl::StrAppend(&fitting, std::string(lines[i]), "\n");
  absl::StrAppend(&fitting, "+", lines.size() - (room - 1), " lines; a taller terminal or ",
                  otherwise_, " shows them\n");
  return Replace(fitting, size);
}

std::string Screen::Finish(std::string_view text, Size size) {
  std::string bytes = Replace(text, size);
  rows_ = 0;
  return bytes;
}

std::string Screen::Replace(std::string_view text, Size size) {
  std::string bytes = "\r";
  if (rows_ > 0 && size != size_) {
    // Terminals differ in what a new size does to old lines: none of them can be trusted.
    bytes += "\x1b[H\x1b[2J";
  } else if (rows_ > 0) {
    absl::StrAppend(&bytes, "\x1b[", rows_, "A");
  }
  bytes += "\x1b[?7l";  // characters wider than Cut() takes them for do not wrap
  rows_ = 0;
  size_ = size;
  for (const std::string_view line : LinesOf(text)) {
    absl::StrAppend(&bytes, "\x1b[2K", Cut(line, size.columns), "\n");
    ++rows_;
  }
  return bytes + "\x1b[?7h\x1b[J";
}

}  // namespace hetero::cli
