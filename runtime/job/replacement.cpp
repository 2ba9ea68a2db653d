#include "runtime/job/replacement.h"

#include "runtime/job/mix.h"

namespace hetero::job {
namespace {

constexpr uint64_t kPurpose = 0x7265706C6163656D;  // "replacem"

}  // namespace

int64_t Replacement(uint64_t seed, int64_t epoch, int64_t slot, int32_t attempt, int64_t samples) {
  const uint64_t hash =
      HashWords(seed, {kPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(slot),
                       static_cast<uint64_t>(attempt)});
  return static_cast<int64_t>(hash % static_cast<uint64_t>(samples));
}

}  // namespace hetero::job
