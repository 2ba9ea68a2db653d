#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hetero::insight {

// `text` made safe between tags and inside quoted attributes of HTML and XML: & < > " ' are
// escaped, bytes that are not UTF-8 and characters that XML forbids become U+FFFD. Names of files,
// classes and nodes come from outside and pass through here.
std::string EscapeHtml(absl::string_view text);

// A <section> with a heading. `title` and `body` are already HTML; `css_class` may be empty.
std::string Section(absl::string_view css_class, absl::string_view title, absl::string_view body);

// A paragraph in place of a table or chart that has nothing to show. `text` is already HTML.
std::string Sentence(absl::string_view text);

}  // namespace hetero::insight
