#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace hetero::feed {

// Where the bytes of frames come from, in order.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // How many may still come; the largest number there is where nothing says so.
  virtual size_t left() const = 0;
  // Fills `out`. After an error nothing more can be read.
  virtual absl::Status Read(void* out, size_t size) = 0;
};

}  // namespace hetero::feed
