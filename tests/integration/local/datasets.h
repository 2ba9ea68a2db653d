#pragma once

#include <map>
#include <string>

#include "tests/support/paths.h"

// What tests of the commands for datasets compare.
namespace hetero::testing {

// Twelve pictures of three classes.
inline const std::string kPictures = testing::SourceDir() + "/tests/golden/datasets/image_folder";

// The digest of the stream that a job reads from what its `dataset` says, 32 hex digits.
std::string InputDigest(const std::string& dataset);

// Relative path and bytes of every file, without what a killed writer left under a hidden name.
std::map<std::string, std::string> FilesOf(const std::string& folder);

}  // namespace hetero::testing
