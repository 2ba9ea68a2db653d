#pragma once

#include <string>

namespace hetero::insight {

// First thing wrong with `html` as XML: tags that do not match, a stray & or <. Empty when well
// formed.
std::string FirstFlaw(const std::string& html);

}  // namespace hetero::insight
