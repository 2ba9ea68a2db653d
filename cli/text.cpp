#include "cli/text.h"

#include <algorithm>

namespace hetero::cli {
namespace {

constexpr std::string_view kEllipsis = "...";

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The length in bytes of the character or colour code at the start of `text`, and its columns.
struct Glyph {
  size_t bytes = 0;
  size_t columns = 0;
};

Glyph First(std::string_view text) {
  if (text.substr(0, 2) == "\x1b[") {
    const size_t end = text.find('m');
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  size_t bytes = 1;
  while (bytes < text.size() && ContinuesCharacter(text[bytes])) ++bytes;
  return {bytes, 1};
}

// Bytes of `text` that fill at most `columns`.
size_t BytesWithin(std::string_view text, size_t columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Glyph glyph = First(text.substr(bytes));
    if (glyph.columns > columns) break;
    columns -= glyph.columns;
    bytes += glyph.bytes;
  }
  return bytes;
}

std::string Padded(const std::string& text, size_t columns) {
  return text + std::string(columns - std::min(columns, Columns(text)), ' ');
}

std::vector<size_t> WidthsOf(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  return widths;
}

size_t TableWidth(const std::vector<Row>& rows) {
  size_t total = 0;
  for (const size_t width : WidthsOf(rows)) total += width + (total > 0 ? 2 : 0);
  return total;
}

void DropColumn(std::vector<Row>& rows, const std::string& name) {
  const auto found = std::find(rows.front().begin(), rows.front().end(), name);
  if (found == rows.front().end()) return;
  const auto index = found - rows.front().begin();
  for (Row& row : rows) {
    if (static_cast<size_t>(index) < row.size()) row.erase(row.begin() + index);
  }
}

}  // namespace

std::string Plain(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::string plain(text);
  std::replace_if(
      plain.begin(), plain.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return plain;
}

size_t Columns(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Glyph glyph = First(text);
    columns += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return columns;
}

std::string Cut(std::string_view text, size_t width) {
  if (width == 0 || Columns(text) <= width) return std::string(text);
  const std::string_view end = kEllipsis.substr(0, width);
  std::string cut(text.substr(0, BytesWithin(text, width - end.size())));
  if (cut.find('\x1b') != std::string::npos) cut += "\x1b[0m";
  return cut.append(end);
}

std::vector<std::string> Wrap(std::string_view text, size_t width, size_t indent,
                              size_t max_lines) {
  std::vector<std::string> lines;
  if (width > 0) indent = std::min(indent, width / 2);
  while (true) {
    const std::string lead(lines.empty() ? 0 : indent, ' ');
    const size_t room = width - lead.size();
    if (width == 0 || Columns(text) <= room) {
      lines.push_back(lead + std::string(text));
      return lines;
    }
    if (lines.size() + 1 == max_lines) {
      lines.push_back(lead + Cut(text, room));
      return lines;
    }
    size_t bytes = BytesWithin(text, room);
    const size_t space = text.rfind(' ', bytes);
    // A word longer than half a line is broken: paths and digests have no spaces.
    if (space != std::string_view::npos && space >= bytes / 2 && space > 0) bytes = space;
    lines.push_back(lead + std::string(text.substr(0, bytes)));
    text.remove_prefix(bytes);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
}

std::string Flow(const std::vector<std::string>& pieces, size_t width, size_t indent) {
  if (width > 0) indent = std::min(indent, width / 2);
  std::string text;
  size_t filled = 0;
  for (const std::string& piece : pieces) {
    const size_t columns = Columns(piece);
    if (filled > 0 && (width == 0 || filled + 2 + columns <= width)) {
      text += "  ";
      filled += 2;
    } else if (filled > 0) {
      text.append("\n").append(indent, ' ');
      filled = indent;
    }
    const std::string fitting = Cut(piece, width == 0 ? 0 : std::max<size_t>(width - filled, 1));
    text += fitting;
    filled += Columns(fitting);
  }
  return text + "\n";
}

std::string Table(std::vector<Row> rows, size_t width,
                  const std::vector<std::string>& dispensable) {
  if (rows.empty()) return "";
  for (const std::string& name : dispensable) {
    if (width == 0 || TableWidth(rows) <= width) break;
    DropColumn(rows, name);
  }
  const std::vector<size_t> widths = WidthsOf(rows);
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += Padded(row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += Cut(line, width) + "\n";
  }
  return text;
}

}  // namespace hetero::cli
