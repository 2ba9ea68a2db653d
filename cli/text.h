#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Text in columns of a terminal. A width of 0 is no limit; colour codes (ESC [ ... m) take no
// column, every other UTF-8 character takes one. Pure.
namespace hetero::cli {

// As one line without control characters: what comes from pods may hold escape sequences.
std::string Plain(std::string_view text);

size_t Columns(std::string_view text);

// The first `width` columns; where something is lost, they end with "...".
std::string Cut(std::string_view text, size_t width);

// Lines of at most `width` columns, broken at spaces where there are some; those after the first
// are indented by `indent`. What would need more than `max_lines` (0: no limit) is cut.
std::vector<std::string> Wrap(std::string_view text, size_t width, size_t indent,
                              size_t max_lines = 0);

// Pieces two spaces apart, in as many lines as the width asks for.
std::string Flow(const std::vector<std::string>& pieces, size_t width, size_t indent = 0);

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart, nothing at the ends of lines. Columns
// named in `dispensable` go, in this order, until it fits; then lines are cut.
std::string Table(std::vector<Row> rows, size_t width = 0,
                  const std::vector<std::string>& dispensable = {});

}  // namespace hetero::cli
