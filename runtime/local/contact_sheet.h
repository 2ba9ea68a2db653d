#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/pipeline/image.h"

namespace hetero::local {

// One picture of 1 or 3 channels, and the line below it ("#17 cat").
struct ContactSheetEntry {
  pipeline::Image image;
  std::string caption;
};

// Writes all pictures with their captions as one PNG, in a grid of about as many columns as rows.
// Small pictures are enlarged by a whole factor, without smoothing, so that pixels stay visible and
// captions fit; captions that are still too wide are cut with "...".
absl::Status WriteContactSheet(const std::vector<ContactSheetEntry>& entries,
                               const std::string& path);

}  // namespace hetero::local
