#include "runtime/source/decompress.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

absl::Status NotSo(const char* name, size_t size) {
  return absl::DataLossError(absl::StrCat("is no ", name, " of ", size, " bytes"));
}

}  // namespace

absl::Status DecompressSnappy(std::span<const uint8_t> bytes, size_t size,
                              std::vector<uint8_t>* out) {
  const char* data = reinterpret_cast<const char*>(bytes.data());
  size_t found = 0;
  if (!snappy::GetUncompressedLength(data, bytes.size(), &found) || found != size) {
    return NotSo("Snappy", size);
  }
  out->resize(size);
  if (!snappy::RawUncompress(data, bytes.size(), reinterpret_cast<char*>(out->data()))) {
    return NotSo("Snappy", size);
  }
  return absl::OkStatus();
}

absl::Status DecompressZstd(std::span<const uint8_t> bytes, size_t size,
                            std::vector<uint8_t>* out) {
  out->resize(size);
  const size_t found = ZSTD_decompress(out->data(), size, bytes.data(), bytes.size());
  if (ZSTD_isError(found) != 0 || found != size) return NotSo("Zstandard", size);
  return absl::OkStatus();
}

absl::Status DecompressGzip(std::span<const uint8_t> bytes, size_t size,
                            std::vector<uint8_t>* out) {
  out->resize(size);
  constexpr int kGzipHeader = 16;
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzipHeader) != Z_OK) {
    return absl::ResourceExhaustedError("no memory for zlib");
  }
  stream.next_in = const_cast<Bytef*>(bytes.data());  // it is only read
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out->data();
  stream.avail_out = static_cast<uInt>(size);
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  return whole ? absl::OkStatus() : NotSo("gzip", size);
}

absl::Status Decompress(Compression compression, std::span<const uint8_t> bytes, size_t size,
                        std::vector<uint8_t>* out) {
  switch (compression) {
    case Compression::kSnappy:
      return DecompressSnappy(bytes, size, out);
    case Compression::kZstd:
      return DecompressZstd(bytes, size, out);
    case Compression::kGzip:
      return DecompressGzip(bytes, size, out);
    case Compression::kNone:
      break;
  }
  if (bytes.size() != size) return NotSo("piece", size);
  out->assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

}  // namespace hetero::source
