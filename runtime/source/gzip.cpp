#include "runtime/source/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib.h: 16 asks for a gzip header and trailer
constexpr size_t kMaxRatio = 1032;        // deflate cannot compress better
constexpr size_t kMinCapacity = 4096;

// The last four bytes of a gzip file: the size of its last member, usually of the whole. Only a
// hint.
size_t SizeHint(std::span<const uint8_t> bytes) {
  if (bytes.size() < 18) return kMinCapacity;
  size_t size = 0;
  for (int i = 1; i <= 4; ++i) size = size << 8 | bytes[bytes.size() - i];
  return std::clamp(size, kMinCapacity, bytes.size() * kMaxRatio);
}

uInt Chunk(size_t size) {
  return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
}

}  // namespace

bool IsGzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::Status Gunzip(const std::string& name, std::span<const uint8_t> bytes, int64_t limit,
                    std::vector<uint8_t>* out) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat(name, ": no memory to decompress"));
  }
  const auto end = absl::MakeCleanup([&stream] { inflateEnd(&stream); });
  const auto most = static_cast<size_t>(limit);
  out->resize(std::min(SizeHint(bytes), most));
  size_t consumed = 0;
  size_t produced = 0;
  while (true) {
    // One byte beyond the limit tells a file that ends there from one that goes on.
    if (produced == out->size()) out->resize(std::min(out->size() * 2, most) + (produced == most));
    stream.next_in = const_cast<Bytef*>(bytes.data() + consumed);
    stream.avail_in = Chunk(bytes.size() - consumed);
    stream.next_out = out->data() + produced;
    stream.avail_out = Chunk(out->size() - produced);
    const uInt in = stream.avail_in;
    const uInt room = stream.avail_out;
    const int result = inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += room - stream.avail_out;
    if (produced > most) {
      return absl::DataLossError(
          absl::StrCat(name, ": holds more than the ", limit, " bytes that are unpacked"));
    }
    if (result == Z_STREAM_END) {
      if (consumed == bytes.size()) break;
      if (!IsGzip(bytes.subspan(consumed))) {
        return absl::DataLossError(absl::StrCat(name, ": ", bytes.size() - consumed,
                                                " bytes after the gzip data, from byte ", consumed,
                                                "; copy the file again"));
      }
      inflateReset(&stream);
    } else if (result == Z_BUF_ERROR ||
               (result == Z_OK && consumed == bytes.size() && stream.avail_out > 0)) {
      return absl::DataLossError(absl::StrCat(name, ": the gzip data is cut short at byte ",
                                              consumed, ", after ", produced,
                                              " decompressed bytes; copy the file again"));
    } else if (result != Z_OK) {
      return absl::DataLossError(
          absl::StrCat(name, ": damaged gzip data near byte ", consumed, " (",
                       stream.msg != nullptr ? stream.msg : "no detail", "); copy the file again"));
    }
  }
  out->resize(produced);
  return absl::OkStatus();
}

}  // namespace hetero::source
