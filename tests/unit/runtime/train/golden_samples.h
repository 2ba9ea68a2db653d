#pragma once

#include <cstdint>
#include <span>

namespace hetero::train {

// picture() of tests/golden/make_training_vectors.py: the pixels of sample `id`, uint8 HWC.
inline void GoldenSample(int64_t id, int32_t classes, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto h =
        static_cast<uint32_t>(static_cast<int64_t>(i) * 2654435761 + (50000 + id) * 40503 + 12345);
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    bytes[i] = static_cast<uint8_t>(20 * (id % classes) + h % 56);
  }
}

}  // namespace hetero::train
