#pragma once

#include <string>

namespace hetero::install {

// Whether `folder` holds the Python package `hetero`.
bool HoldsPackage(const std::string& folder);

// The folder that holds the package of `program` (".../bin/hetero-runtime") where that was
// installed: images have it under share, what was installed itself beside bin. Empty: none.
std::string InstalledPackage(const std::string& program);

// The same, or that of the sources in whose build/PRESET/bin `program` lies.
std::string PackageOf(const std::string& program);

}  // namespace hetero::install
