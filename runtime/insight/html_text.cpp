#include "runtime/insight/html_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace hetero::insight {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629); 0 when there is none.
size_t SequenceLength(absl::string_view text) {
  auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    if (first == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      escaped.append(kReplacement.data(), kReplacement.size());
    } else if (length > 1) {
      escaped.append(text.data(), length);
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if ((static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r')) {
      escaped.append(kReplacement.data(), kReplacement.size());
    } else {
      escaped += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

std::string Section(absl::string_view css_class, absl::string_view title, absl::string_view body) {
  return absl::StrCat("<section", css_class.empty() ? "" : " class=\"", css_class,
                      css_class.empty() ? "" : "\"", ">\n<h2>", title, "</h2>\n", body,
                      "</section>\n");
}

std::string Sentence(absl::string_view text) {
  return absl::StrCat("<p class=\"empty\">", text, "</p>\n");
}

}  // namespace hetero::insight
