#pragma once

#include <string>
#include <vector>

namespace hetero::install {

// The shared libraries of this process, its loader among them, by the paths that they were loaded
// from.
std::vector<std::string> LoadedLibraries();

}  // namespace hetero::install
