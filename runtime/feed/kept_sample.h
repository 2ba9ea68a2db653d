#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/pipeline/scratch.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// A sample whose memory a thread keeps for the next one. Not thread-safe.
class KeptSample {
 public:
  source::RawSample& sample() { return sample_; }
  // The sample was used: gives back what is beyond the limit.
  void End() {
    std::vector<uint8_t>& bytes = sample_.bytes;
    std::vector<uint8_t>& mask = sample_.mask;
    const size_t limit = needs_.Limit(std::max(bytes.size(), mask.size()));
    for (std::vector<uint8_t>* buffer : {&bytes, &mask}) {
      if (buffer->capacity() > limit) *buffer = std::vector<uint8_t>();
    }
  }

 private:
  source::RawSample sample_;
  pipeline::RecentNeeds needs_;
};

}  // namespace hetero::feed
