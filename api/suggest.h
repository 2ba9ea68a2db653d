#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetero::api {

// The candidate closest to `word` by edit distance (case ignored), empty if none is close enough to
// be a slip of the pen.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c".
std::string Join(const std::vector<std::string>& words);

}  // namespace hetero::api
