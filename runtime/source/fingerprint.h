#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/source/counter_random.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Running 64-bit hash of what identifies a dataset: FNV-1a with a final mix. Each text is closed by
// its length, so ("ab", "c") and ("a", "bc") differ.
class Fingerprint {
 public:
  void Add(std::string_view text) {
    for (const char c : text) Byte(static_cast<uint8_t>(c));
    Add(static_cast<uint64_t>(text.size()));
  }
  void Add(uint64_t number) {
    int left = 8;  // bytes, the lowest first
    for (; number != 0; number >>= 8, --left) Byte(static_cast<uint8_t>(number));
    hash_ *= kZeros[static_cast<size_t>(left)];
  }

  // A weak ETag says nothing of the bytes, and may differ between the nodes of a server.
  void Add(const storage::Object& object) {
    Add(object.name);
    Add(static_cast<uint64_t>(object.size));
    Add(object.version.starts_with("W/") ? std::string_view() : object.version);
  }

  uint64_t value() const { return Mix64(hash_); }
  // 16 lower-case hex digits.
  std::string ToHex() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value()));
    return text;
  }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3u;
  // What a row of bytes that are zero multiplies by: a step for each is most of the time for ten
  // million names and sizes.
  static constexpr std::array<uint64_t, 9> kZeros = [] {
    std::array<uint64_t, 9> powers = {1};
    for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * kPrime;
    return powers;
  }();

  void Byte(uint8_t byte) { hash_ = (hash_ ^ byte) * kPrime; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace hetero::source
