#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hetero::source {

inline constexpr size_t kTarBlock = 512;  // bytes; members begin at multiples of it
// Two blocks of zeros behind the last member.
inline constexpr size_t kTarEnd = 2 * kTarBlock;

// The header of a file of `size` bytes in a tar archive (POSIX.1-1988 ustar), kTarBlock bytes: of
// nobody, from 1970, readable by all, so that the same files make the same archive. `name` has at
// most 100 bytes, and no file more than 8 GiB - 1.
std::string TarHeader(std::string_view name, int64_t size);

// The zeros between a file of `size` bytes and the next header.
constexpr size_t TarPadding(int64_t size) { return static_cast<size_t>(-size) % kTarBlock; }

}  // namespace hetero::source
