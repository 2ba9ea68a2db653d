#pragma once

#include <cstdint>

namespace hetero::job {

// Image of `index` under the bijection of [0, size) that `key` selects; 1 <= size <= 2^62,
// index < size. No state: safe from any thread. A balanced Feistel network runs on the smallest
// power of four >= size and repeats until it lands below `size` (cycle walking: Black and Rogaway,
// "Ciphers with arbitrary finite domains", 2002). The domain is smaller than 4 x size, so
// fewer than four repetitions are expected.
uint64_t FeistelPermute(uint64_t key, uint64_t size, uint64_t index);

}  // namespace hetero::job
