#include "runtime/source/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib.h: 16 asks for a gzip header and trailer
constexpr size_t kMaxRatio = 1032;        // deflate cannot compress better
constexpr size_t kMinCapacity = 4096;
constexpr size_t kBytesAtOnce = size_t{1} << 20;  // that is decompressed at once
constexpr int64_t kMagicBytes = 2;

// The last four bytes of a gzip file: the size of its last member, usually of the whole. Only a
// hint.
size_t SizeHint(std::span<const uint8_t> bytes) {
  if (bytes.size() < 18) return kMinCapacity;
  size_t size = 0;
  for (int i = 1; i <= 4; ++i) size = size << 8 | bytes[bytes.size() - i];
  return std::clamp(size, kMinCapacity, bytes.size() * kMaxRatio);
}

}  // namespace

bool IsGzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

struct GzipReader::Stream {
  z_stream zlib{};
  int begun = Z_OK;
};

GzipReader::GzipReader(std::string name, int64_t size, int64_t limit, Sink sink)
    : name_(std::move(name)),
      size_(size),
      limit_(limit),
      sink_(std::move(sink)),
      stream_(std::make_unique<Stream>()),
      out_(kBytesAtOnce) {
  stream_->begun = inflateInit2(&stream_->zlib, kGzipWindowBits);
}

GzipReader::~GzipReader() { inflateEnd(&stream_->zlib); }

absl::Status GzipReader::Add(std::span<const uint8_t> bytes) {
  if (stream_->begun != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat(name_, ": no memory to decompress"));
  }
  z_stream& zlib = stream_->zlib;
  while (!bytes.empty()) {
    const auto piece =
        static_cast<uInt>(std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
    zlib.next_in = const_cast<Bytef*>(bytes.data());
    zlib.avail_in = piece;
    while (zlib.avail_in > 0) {
      if (ended_) {
        inflateReset(&zlib);
        ended_ = false;
        member_ = consumed_;
      }
      HETERO_RETURN_IF_ERROR(Step());
    }
    bytes = bytes.subspan(piece);
  }
  return absl::OkStatus();
}

absl::Status GzipReader::Step() {
  z_stream& zlib = stream_->zlib;
  int result = Z_OK;
  do {
    zlib.next_out = out_.data();
    zlib.avail_out = static_cast<uInt>(out_.size());
    const uInt left = zlib.avail_in;
    result = inflate(&zlib, Z_NO_FLUSH);
    consumed_ += left - zlib.avail_in;
    const size_t count = out_.size() - zlib.avail_out;
    produced_ += static_cast<int64_t>(count);
    if (produced_ > limit_) {
      return absl::DataLossError(
          absl::StrCat(name_, ": holds more than the ", limit_, " bytes that are unpacked"));
    }
    if (count > 0) HETERO_RETURN_IF_ERROR(sink_({out_.data(), count}));
    // Z_BUF_ERROR: it wants more than there is here.
  } while (result == Z_OK && zlib.avail_out == 0);
  ended_ = result == Z_STREAM_END;
  if (ended_ || result == Z_OK || result == Z_BUF_ERROR) return absl::OkStatus();
  if (member_ > 0 && consumed_ - member_ <= kMagicBytes) return OtherBytes();
  return absl::DataLossError(absl::StrCat(name_, ": damaged gzip data near byte ", consumed_, " (",
                                          zlib.msg != nullptr ? zlib.msg : "no detail",
                                          "); copy the file again"));
}

absl::Status GzipReader::OtherBytes() const {
  return absl::DataLossError(absl::StrCat(name_, ": ", size_ - member_,
                                          " bytes after the gzip data, from byte ", member_,
                                          "; copy the file again"));
}

absl::StatusOr<int64_t> GzipReader::End() const {
  if (ended_) return produced_;
  if (member_ > 0 && consumed_ - member_ < kMagicBytes) return OtherBytes();
  return absl::DataLossError(absl::StrCat(name_, ": the gzip data is cut short at byte ", consumed_,
                                          ", after ", produced_,
                                          " decompressed bytes; copy the file again"));
}

absl::Status Gunzip(const std::string& name, std::span<const uint8_t> bytes, int64_t limit,
                    std::vector<uint8_t>* out) {
  out->clear();
  out->reserve(std::min(SizeHint(bytes), static_cast<size_t>(limit)));
  GzipReader reader(name, static_cast<int64_t>(bytes.size()), limit,
                    [out](std::span<const uint8_t> piece) {
                      out->insert(out->end(), piece.begin(), piece.end());
                      return absl::OkStatus();
                    });
  HETERO_RETURN_IF_ERROR(reader.Add(bytes));
  return reader.End().status();
}

}  // namespace hetero::source
