#include "runtime/job/stream_digest.h"

#include <cstdio>

#include "runtime/job/mix.h"
#include "runtime/job/sip_hash.h"

namespace hetero::job {
namespace {

constexpr uint64_t kPurpose = 0x7374726561646967;  // "streadig"

}  // namespace

void StreamDigest::Add(uint64_t seed, int64_t epoch, int64_t step, int64_t slot, int64_t sample_id,
                       uint32_t crc32c) {
  const uint64_t words[] = {static_cast<uint64_t>(epoch), static_cast<uint64_t>(step),
                            static_cast<uint64_t>(slot), static_cast<uint64_t>(sample_id), crc32c};
  const Hash128 hash =
      SipHash128(HashWords(seed, {kPurpose, 0}), HashWords(seed, {kPurpose, 1}), words);
  *this += StreamDigest(hash.high, hash.low);
}

StreamDigest& StreamDigest::operator+=(const StreamDigest& other) {
  low_ += other.low_;
  const uint64_t carry = low_ < other.low_ ? 1 : 0;
  high_ += other.high_ + carry;
  return *this;
}

std::string StreamDigest::ToHex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high_),
                static_cast<unsigned long long>(low_));
  return text;
}

}  // namespace hetero::job
