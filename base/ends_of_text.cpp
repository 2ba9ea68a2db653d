#include "base/ends_of_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace hetero::base {
namespace {

constexpr std::string_view kMissing = "[...]\n";

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string EndsOfText(std::string_view text, size_t max_bytes) {
  const std::string whole = ToUtf8(text);
  if (whole.size() <= max_bytes) return whole;
  const size_t line = whole.find('\n');
  const size_t most = max_bytes / 3;
  if (line == std::string::npos || max_bytes < 4 * kMissing.size()) return ToUtf8(whole, max_bytes);
  std::string ends = ToUtf8(whole, std::min(line, most));
  ends += '\n';
  ends += kMissing;
  size_t from = whole.size() - (max_bytes - ends.size());
  while (from < whole.size() && Continues(whole[from])) ++from;
  // From the beginning of a line, where one is near.
  const size_t next = whole.find('\n', from);
  if (next != std::string::npos && next - from < most && next + 1 < whole.size()) from = next + 1;
  return ends + whole.substr(from);
}

}  // namespace hetero::base
