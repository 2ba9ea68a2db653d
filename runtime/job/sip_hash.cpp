#include "runtime/job/sip_hash.h"

#include <bit>

namespace hetero::job {
namespace {

struct State {
  uint64_t v0, v1, v2, v3;

  void Rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }

  void Absorb(uint64_t word) {
    v3 ^= word;
    Rounds(2);
    v0 ^= word;
  }

  uint64_t Squeeze() {
    Rounds(4);
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

Hash128 SipHash128(uint64_t key_low, uint64_t key_high, std::span<const uint64_t> words) {
  // The constants spell "somepseudorandomlygeneratedbytes"; 0xEE and 0xDD mark the 128-bit variant.
  State state{key_low ^ 0x736F6D6570736575u, key_high ^ 0x646F72616E646F6Du ^ 0xEE,
              key_low ^ 0x6C7967656E657261u, key_high ^ 0x7465646279746573u};
  for (uint64_t word : words) state.Absorb(word);
  state.Absorb(static_cast<uint64_t>(words.size() * 8) << 56);
  Hash128 hash;
  state.v2 ^= 0xEE;
  hash.low = state.Squeeze();
  state.v1 ^= 0xDD;
  hash.high = state.Squeeze();
  return hash;
}

}  // namespace hetero::job
