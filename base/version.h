#pragma once

namespace hetero::base {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace hetero::base
