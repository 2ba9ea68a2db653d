#include "runtime/insight/html_text.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace hetero::insight {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Two characters that XML forbids, U+FFFE and U+FFFF, count as none.
size_t SequenceLength(absl::string_view text) {
  const size_t length = base::Utf8SequenceLength({text.data(), text.size()});
  return absl::StartsWith(text, "\xEF\xBF\xBE") || absl::StartsWith(text, "\xEF\xBF\xBF") ? 0
                                                                                          : length;
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
