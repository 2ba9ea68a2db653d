#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace hetero::fuzz {

// `bytes` as a gzip file: what is packed here gets past the checksum.
inline std::vector<uint8_t> Gzip(std::span<const uint8_t> bytes) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  Require(deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::vector<uint8_t> packed(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace hetero::fuzz
