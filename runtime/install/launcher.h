#pragma once

#include <string_view>

namespace hetero::install {

// The bytes of the program hetero-launch (launch.cpp).
std::string_view Launcher();

}  // namespace hetero::install
