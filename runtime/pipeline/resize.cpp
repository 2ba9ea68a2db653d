#include "runtime/pipeline/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/parameter_checks.h"
#include "runtime/pipeline/resize_kernel.h"
#include "runtime/pipeline/scratch.h"

namespace hetero::pipeline {
namespace {

// ATen's compute_index_ranges_int16_weights (UpSampleKernel.cpp) for bilinear with antialias.
void MakeFilter(int32_t input, int32_t output, ResizeFilter* filter) {
  static thread_local std::vector<double> exact;
  const double scale = double(input) / output;
  const double support = scale >= 1 ? scale : 1;
  const double inverse = scale >= 1 ? 1 / scale : 1;
  filter->stride = (int32_t(support) * 2 + 3 + 3) / 4 * 4;
  filter->taps.resize(size_t(output));
  exact.assign(size_t(output) * size_t(filter->stride), 0.0);
  double largest = 0;
  for (int32_t i = 0; i < output; ++i) {
    const double center = scale * (i + 0.5);
    const int32_t first = std::max(int32_t(center - support + 0.5), 0);
    const int32_t count = std::min(int32_t(center + support + 0.5), input) - first;
    double* weights = &exact[size_t(i) * size_t(filter->stride)];
    double total = 0;
    for (int32_t j = 0; j < count; ++j) {
      const double x = (j + first - center + 0.5) * inverse;
      const double distance = x < 0 ? -x : x;
      weights[j] = distance < 1 ? 1 - distance : 0;
      total += weights[j];
    }
    for (int32_t j = 0; j < count && total != 0; ++j) {
      weights[j] /= total;
      largest = std::max(largest, weights[j]);
    }
    filter->taps[size_t(i)] = {first, count};
  }
  // As many bits as keep the largest weight inside int16.
  filter->precision = 0;
  while (filter->precision < 22 &&
         int32_t(0.5 + largest * (1 << (filter->precision + 1))) < (1 << 15)) {
    ++filter->precision;
  }
  filter->weights.resize(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    filter->weights[i] = int16_t(0.5 + exact[i] * (1 << filter->precision));
  }
}

void Bilinear(const uint8_t* in, size_t stride, const Box& box, Image* out) {
  static thread_local ResizeFilter horizontal;
  static thread_local ResizeFilter vertical;
  static thread_local std::vector<uint8_t> narrowed;
  static thread_local const KeptBuffer kept(&narrowed);
  const int32_t channels = out->shape.channels;
  const bool same_height = box.height == out->shape.height;
  if (box.width != out->shape.width) {
    MakeFilter(box.width, out->shape.width, &horizontal);
    if (!same_height) narrowed.resize(size_t(box.height) * out->row_bytes());
    uint8_t* target = same_height ? out->bytes.data() : narrowed.data();
    ResizeHorizontally({in, stride, box.height, box.width, channels}, horizontal, target);
    in = target;
    stride = out->row_bytes();
  }
  if (!same_height) {
    MakeFilter(box.height, out->shape.height, &vertical);
    ResizeVertically({in, stride, box.height, out->shape.width, channels}, vertical,
                     out->bytes.data());
  }
}

// ATen computes the source index in float32.
int32_t NearestIndex(int32_t i, int32_t input, int32_t output) {
  const float scale = float(input) / float(output);
  return std::min(int32_t(float(i) * scale), input - 1);
}

void Nearest(const uint8_t* in, size_t stride, const Box& box, Image* out) {
  static thread_local std::vector<size_t> offsets;
  const size_t channels = size_t(out->shape.channels);
  offsets.resize(size_t(out->shape.width));
  for (int32_t x = 0; x < out->shape.width; ++x) {
    offsets[size_t(x)] = size_t(NearestIndex(x, box.width, out->shape.width)) * channels;
  }
  for (int32_t y = 0; y < out->shape.height; ++y) {
    const uint8_t* source = in + size_t(NearestIndex(y, box.height, out->shape.height)) * stride;
    uint8_t* target = out->row(y);
    for (const size_t offset : offsets) {
      for (size_t c = 0; c < channels; ++c) *target++ = source[offset + c];
    }
  }
}

}  // namespace

api::Size SizeFromShorterSide(const api::Size& size, int32_t shorter_side) {
  const auto longer = [shorter_side](int32_t long_edge, int32_t short_edge) {
    return int32_t(std::min<int64_t>(int64_t{shorter_side} * long_edge / short_edge, INT32_MAX));
  };
  if (size.width <= size.height) return {longer(size.height, size.width), shorter_side};
  return {shorter_side, longer(size.width, size.height)};
}

void ResizeBox(const ImageView& in, const Box& box, const api::Size& size,
               api::Interpolation interpolation, Image* out) {
  out->Reshape({size.height, size.width, in.shape.channels});
  const size_t stride = in.row_bytes();
  const uint8_t* first = in.row(box.top) + size_t(box.left) * size_t(in.shape.channels);
  if (box.height == size.height && box.width == size.width) {
    for (int32_t y = 0; y < box.height; ++y) {
      std::memcpy(out->row(y), first + size_t(y) * stride, out->row_bytes());
    }
  } else if (interpolation == api::Interpolation::kNearest) {
    Nearest(first, stride, box, out);
  } else {
    Bilinear(first, stride, box, out);
  }
}

api::Size Resize::SizeFor(const api::ImageShape& input) const {
  return size_ ? *size_ : SizeFromShorterSide({input.height, input.width}, shorter_side_);
}

absl::StatusOr<api::ImageShape> Resize::OutputShape(const api::ImageShape& input) const {
  if (!size_ && input.height == 0) return input;
  const api::Size size = SizeFor(input);
  if (int64_t{size.height} * size.width > kMaxPixels) {
    return absl::InvalidArgumentError(absl::StrCat("resizing ", ToString(input), " to ",
                                                   size.height, "x", size.width, " exceeds ",
                                                   kMaxPixels, " pixels; choose a smaller size"));
  }
  return api::ImageShape{size.height, size.width, input.channels};
}

absl::Status Resize::Apply(const ImageView& in, Image* out, job::RandomStream&) const {
  const api::Size size = SizeFor(in.shape);
  if (int64_t{size.height} * size.width > kMaxPixels) {
    return absl::DataLossError(absl::StrCat("Resize of ", ToString(in.shape), " gives ",
                                            size.height, "x", size.width, ", more than ",
                                            kMaxPixels, " pixels"));
  }
  ResizeBox(in, {0, 0, in.shape.height, in.shape.width}, size, interpolation_, out);
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeResize(const api::OperatorSpec& spec, const OperatorContext&) {
  if (!spec.size) return One<Resize>(*spec.shorter_side, *spec.interpolation);
  if (absl::Status status = CheckPixels(*spec.size); !status.ok()) return status;
  return One<Resize>(*spec.size, *spec.interpolation);
}

}  // namespace hetero::pipeline
