#include "runtime/local/pack_sample.h"

#include <png.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::local {
namespace {

// Pixels as a PNG, which gives them back as they are.
absl::Status EncodePng(const api::ImageShape& shape, std::vector<uint8_t>* bytes) {
  if (shape.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", shape.channels, " channel, and pictures in files are read with three; keep this ",
        "dataset as it is"));
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(shape.width);
  header.height = static_cast<png_uint_32>(shape.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> encoded(size);
  if (png_image_write_to_memory(&header, encoded.data(), &size, 0, bytes->data(), 0, nullptr) ==
      0) {
    return absl::InternalError(absl::StrCat("cannot be encoded: ", header.message));
  }
  encoded.resize(size);
  *bytes = std::move(encoded);
  return absl::OkStatus();
}

// JSON has no word for what is no number, and readers of either format take none.
absl::Status CheckFinite(const source::RawSample& sample, const api::Label& label) {
  if (label.type != api::LabelType::kFloat32) return absl::OkStatus();
  for (size_t at = 0; at + sizeof(float) <= sample.fields.size(); at += sizeof(float)) {
    float number;
    std::memcpy(&number, sample.fields.data() + at, sizeof number);
    if (!std::isfinite(number)) {
      return absl::InvalidArgumentError(
          "has a label that is not finite, which shards cannot hold; correct it, or take the "
          "sample out");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakePackable(const api::Label& label, source::RawSample* sample) {
  HETERO_RETURN_IF_ERROR(CheckFinite(*sample, label));
  if (sample->encoding != source::Encoding::kRaw) return absl::OkStatus();
  return EncodePng(sample->shape, &sample->bytes);
}

}  // namespace hetero::local
