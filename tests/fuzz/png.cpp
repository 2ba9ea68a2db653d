#include <png.h>
#include <zlib.h>

#include <string_view>

#include "runtime/pipeline/decode.h"
#include "tests/fuzz/fuzz.h"

// A PNG file. Its chunks' checksums are made to fit first, or hardly an input would get past them.
namespace hetero::pipeline {
namespace {

constexpr uint64_t kLargest = 256 * 256;
constexpr size_t kSignature = 8;
constexpr size_t kChunkFrame = 12;  // length, type, checksum

uint32_t BigEndian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

void MendChecksums(std::vector<uint8_t>& file) {
  size_t at = kSignature;
  while (at + kChunkFrame <= file.size()) {
    const size_t length = BigEndian(&file[at]);
    if (length > file.size() - at - kChunkFrame) return;
    const auto crc = static_cast<uint32_t>(crc32(0, &file[at + 4], static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = uint8_t(crc >> (24 - 8 * i));
    at += kChunkFrame + length;
  }
}

// A picture is written again, by libpng's simple interface, and must come back.
void CheckRoundTrip(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.shape.width);
  header.height = static_cast<png_uint_32>(image.shape.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> file(size);
  fuzz::Require(png_image_write_to_memory(&header, file.data(), &size, 0, image.bytes.data(), 0,
                                          nullptr) != 0,
                "libpng does not write what was decoded");
  file.resize(size);
  Image again;
  fuzz::Require(DecodePng(file, &again).ok(), "what was decoded and written is not read");
  fuzz::Require(again.shape == image.shape && again.bytes == image.bytes,
                "what was decoded and written comes back as something else");
}

// The same file as a mask. A grey picture of 8 bits is what its mask is.
void CheckMask(const std::vector<uint8_t>& file, const Image* picture) {
  constexpr size_t kBits = 24, kColours = 25;
  const absl::StatusOr<hetero::api::Size> size = PngSize(file);
  fuzz::Require(size.ok() == (file.size() >= 24), "a size of nothing");
  if (!size.ok()) return;
  Image mask;
  const absl::Status status = DecodeMask(file, *size, &mask);
  if (!status.ok()) {
    fuzz::Require(status.message().substr(0, 5) == "PNG: ", "an error that names nothing");
    return;
  }
  fuzz::Require(mask.shape == api::ImageShape{size->height, size->width, 1} &&
                    int64_t(mask.bytes.size()) == ByteSize(mask.shape),
                "a mask of another size");
  fuzz::Require(file[kColours] == 3 || (file[kColours] == 0 && file[kBits] == 8),
                "a mask of another kind");
  fuzz::Require(picture != nullptr && picture->shape.height == size->height &&
                    picture->shape.width == size->width,
                "a mask of no picture");
  for (size_t i = 0; file[kColours] == 0 && i < mask.bytes.size(); ++i) {
    fuzz::Require(picture->bytes[3 * i] == mask.bytes[i], "a mask of other values");
  }
}

}  // namespace
}  // namespace hetero::pipeline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::pipeline;
  using hetero::fuzz::Require;
  std::vector<uint8_t> file(data, data + size);
  MendChecksums(file);
  constexpr std::string_view kHeader = "IHDR";  // libpng takes one behind other chunks, too
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (size_t at = text.find(kHeader); at < size && size - at >= 12;
       at = text.find(kHeader, at + 1)) {
    const uint64_t pixels = uint64_t{BigEndian(data + at + 4)} * BigEndian(data + at + 8);
    if (pixels > kLargest && pixels <= uint64_t{kMaxPixels}) return 0;  // only takes time
  }
  Image image;
  const absl::Status status = DecodePng(file, &image);
  CheckMask(file, status.ok() ? &image : nullptr);
  if (!status.ok()) {
    Require(status.message().substr(0, 5) == "PNG: ", "an error that names nothing");
    return 0;
  }
  Require(image.shape.height > 0 && image.shape.width > 0 && image.shape.channels == 3 &&
              int64_t(image.bytes.size()) == ByteSize(image.shape),
          "a picture without a size");
  Image dirty;
  dirty.bytes.assign(image.bytes.size(), 0xaa);
  Require(DecodePng(file, &dirty).ok() && dirty.bytes == image.bytes,
          "what an earlier picture left shows through");
  CheckRoundTrip(image);
  return 0;
}
