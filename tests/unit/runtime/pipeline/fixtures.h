#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/job/philox.h"
#include "runtime/pipeline/image.h"
#include "runtime/pipeline/pipeline.h"
#include "tests/support/paths.h"

namespace hetero::pipeline {

inline std::vector<uint8_t> ReadGolden(const std::string& file) {
  std::ifstream in(testing::SourceDir() + "/tests/golden/pipeline/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A picture of noise, the same for the same arguments.
inline Image NoiseImage(const api::ImageShape& shape, uint64_t seed = 1) {
  Image image;
  image.Reshape(shape);
  job::RandomStream random(seed, 0, 0, 0);
  for (uint8_t& v : image.bytes) v = uint8_t(random.NextUint32());
  return image;
}

// The part of `image` under `box`.
inline Image Cut(const Image& image, const Box& box) {
  Image part;
  part.Reshape({box.height, box.width, 3});
  for (int32_t y = 0; y < box.height; ++y) {
    std::memcpy(part.row(y), image.row(box.top + y) + size_t(box.left) * 3, part.row_bytes());
  }
  return part;
}

inline source::RawSample RawSampleOf(const Image& image) {
  source::RawSample sample;
  sample.shape = image.shape;
  sample.bytes = image.bytes;
  return sample;
}

inline api::OperatorSpec Op(api::OperatorKind kind) {
  api::OperatorSpec spec;
  spec.op = kind;
  return spec;
}

inline api::OperatorSpec SizedOp(api::OperatorKind kind, int32_t height, int32_t width) {
  api::OperatorSpec spec = Op(kind);
  spec.size = api::Size{height, width};
  return spec;
}

}  // namespace hetero::pipeline
