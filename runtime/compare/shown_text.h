#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text of reports as a terminal shows it, which may be anybody's. Pure functions.
namespace hetero::compare {

// On one line and without control characters, at most `columns` characters; "..." ends what was
// longer. Bytes that are not UTF-8 become U+FFFD. `columns` is at least 3.
std::string ShownText(std::string_view text, size_t columns);

// Characters of well-formed UTF-8.
size_t ColumnsOf(std::string_view text);

// `text` with spaces at its end, or at its beginning, up to `columns`.
std::string PaddedRight(std::string text, size_t columns);
std::string PaddedLeft(const std::string& text, size_t columns);

}  // namespace hetero::compare
