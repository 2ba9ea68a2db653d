#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/hetero_training_job.h"

namespace hetero::pipeline {

// No picture of more pixels is decoded or produced: a forged header or an extreme aspect ratio must
// not take the memory of the machine. Twice Pillow's MAX_IMAGE_PIXELS, where Pillow refuses too.
inline constexpr int64_t kMaxPixels = 178'956'970;

constexpr int64_t ByteSize(const api::ImageShape& shape) {
  return int64_t{shape.height} * shape.width * shape.channels;
}

// "480x640x3", for messages.
inline std::string ToString(const api::ImageShape& shape) {
  return absl::StrCat(shape.height, "x", shape.width, "x", shape.channels);
}

// A rectangle of pixels inside a picture.
struct Box {
  int32_t top = 0;
  int32_t left = 0;
  int32_t height = 0;
  int32_t width = 0;
  bool operator==(const Box&) const = default;
};

// Borrowed uint8 [height, width, channels] without gaps between rows.
struct ImageView {
  api::ImageShape shape;
  const uint8_t* data = nullptr;

  size_t row_bytes() const { return size_t(shape.width) * size_t(shape.channels); }
  const uint8_t* row(int32_t y) const { return data + size_t(y) * row_bytes(); }
};

// Owned uint8 [height, width, channels]. Reshape() keeps the capacity, so that an image that is
// used again and again stops allocating.
struct Image {
  api::ImageShape shape;
  std::vector<uint8_t> bytes;

  // Contents are unspecified afterwards.
  void Reshape(const api::ImageShape& new_shape) {
    shape = new_shape;
    bytes.resize(size_t(ByteSize(shape)));
  }
  size_t row_bytes() const { return size_t(shape.width) * size_t(shape.channels); }
  uint8_t* row(int32_t y) { return bytes.data() + size_t(y) * row_bytes(); }
  const uint8_t* row(int32_t y) const { return bytes.data() + size_t(y) * row_bytes(); }
  ImageView view() const { return {shape, bytes.data()}; }
};

// Makes `*out` a copy of `in`.
inline void Copy(const ImageView& in, Image* out) {
  out->shape = in.shape;
  out->bytes.assign(in.data, in.data + ByteSize(in.shape));
}

}  // namespace hetero::pipeline
