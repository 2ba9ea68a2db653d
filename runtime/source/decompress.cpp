#include "runtime/source/decompress.h"

#include <snappy.h>
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

}  // namespace hetero::source
