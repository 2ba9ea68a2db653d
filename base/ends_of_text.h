#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hetero::base {

// ToUtf8() of a text of which only so much can be kept, without its middle: its first line says
// what happened, and the last words of a program say why. "[...]" stands for what is missing, on a
// line of its own.
std::string EndsOfText(std::string_view text, size_t max_bytes);

}  // namespace hetero::base
