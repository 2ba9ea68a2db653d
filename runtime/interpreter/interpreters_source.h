#pragma once

#include <string_view>

namespace hetero::interpreter {

// python/hetero/interpreters.py, as it was when this program was built.
extern const std::string_view kInterpretersSource;

}  // namespace hetero::interpreter
