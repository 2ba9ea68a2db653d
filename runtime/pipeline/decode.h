#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/pipeline/image.h"

namespace hetero::pipeline {

// Decode an encoded picture into uint8 RGB (always three channels), with the same bytes on every
// machine for one version of the library. kDataLoss carries the library's message: not such a file,
// truncated, corrupt, or larger than kMaxPixels, or a JPEG in more or larger scans than anybody
// writes; these limits are the same on every machine. kResourceExhausted: there was no memory here,
// which says nothing about the picture. Orientation and colour profiles are ignored, as
// torchvision's decode_image does.

// Versions of libjpeg-turbo, as it was compiled with, and of libpng: they decide pixels.
const char* JpegVersion();
const char* PngVersion();

// libjpeg-turbo with the accurate integer IDCT and smooth chroma upsampling. CMYK is refused.
absl::Status DecodeJpeg(std::span<const uint8_t> bytes, Image* out);

// Decodes one rectangle and what the decoder makes anyway beside it: `*inside` says where in `*out`
// the rectangle lies. Its pixels are those of DecodeJpeg(), for less work: other blocks are not
// transformed, and what lies below is not even read. `choose` gets the picture's shape and returns
// a rectangle inside it. A file whose end marker is missing is decoded in full, so that a truncated
// file is bad whatever the rectangle; other damage below the rectangle goes unnoticed.
absl::Status DecodeJpegBox(std::span<const uint8_t> bytes,
                           absl::FunctionRef<Box(const api::ImageShape&)> choose, Image* out,
                           Box* inside);

// Height and width that the first two give a file of whole headers, without its pixels.
absl::StatusOr<api::Size> JpegSize(std::span<const uint8_t> bytes);
absl::StatusOr<api::Size> PngSize(std::span<const uint8_t> bytes);

// A mask, [height, width, 1]: a PNG of one channel with 8 bits, its values as they are, or of a
// palette with at most 8 bits, the indices and not the colours. kDataLoss besides: any other PNG,
// and one of another size than `size`.
absl::Status DecodeMask(std::span<const uint8_t> bytes, const api::Size& size, Image* out);

// libpng: palettes and grey expanded, 16 bit scaled to 8, alpha dropped.
absl::Status DecodePng(std::span<const uint8_t> bytes, Image* out);

}  // namespace hetero::pipeline
