#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace hetero::base {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;  // two bytes would do
    if (first == 0xED && byte(1) > 0x9F) return 0;  // half of a UTF-16 pair
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;  // three bytes would do
    if (first == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

std::string ToUtf8(std::string_view text, size_t max_bytes) {
  std::string valid;
  valid.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const std::string_view next = length == 0 ? kReplacement : text.substr(0, length);
    if (next.size() > max_bytes - valid.size()) break;
    valid.append(next);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

}  // namespace hetero::base
