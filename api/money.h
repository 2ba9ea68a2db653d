#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Dollars as a manifest writes them. Pure.
namespace hetero::api {

// "2.48" dollars are 2480000 micro-dollars; what is below half a millionth is left out. None: that
// is no decimal number. What is more than fits is the largest that does.
std::optional<int64_t> MicroDollars(std::string_view decimal);

}  // namespace hetero::api
