#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

// What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(), which libFuzzer
// calls with one input after the other (scripts/fuzz.sh, docs/testing.md).
namespace hetero::fuzz {

// A finding: ends the process, and libFuzzer keeps the input.
inline void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "FINDING: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes an input apart, from its front. What is not there any more is zero or empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    const std::span<const uint8_t> byte = Take(1);
    return byte.empty() ? 0 : byte[0];
  }
  // 16 bits, little-endian.
  uint16_t Short() {
    const uint8_t low = Byte();
    return static_cast<uint16_t>(low | Byte() << 8);
  }
  std::span<const uint8_t> Take(size_t size) {
    const std::span<const uint8_t> taken = left_.first(std::min(size, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::span<const uint8_t> Rest() { return Take(left_.size()); }
  std::string Text(size_t size) {
    const std::span<const uint8_t> taken = Take(size);
    return std::string(TextOf(taken.data(), taken.size()));
  }
  std::string RestAsText() { return Text(left_.size()); }

 private:
  std::span<const uint8_t> left_;
};

// The product's warnings about an input are neither findings nor interesting.
inline void Silence() {
  [[maybe_unused]] static const bool once = [] {
    log::Init("fuzz", log::Level::kOff);
    return true;
  }();
}

}  // namespace hetero::fuzz
