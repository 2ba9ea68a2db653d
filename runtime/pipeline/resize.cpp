#include "runtime/pipeline/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::pipeline {
namespace {

// What one output coordinate takes from the input along one axis.
struct Taps {
  int32_t first = 0;
  int32_t count = 0;
};

// The filter of one axis. Weights of output i start at weights[i * stride].
struct Filter {
  std::vector<Taps> taps;
  std::vector<double> exact;
  std::vector<int16_t> weights;
  int32_t stride = 0;
  int32_t precision = 0;  // a weight of 1 is 2^precision
};

// ATen's compute_index_ranges_int16_weights (UpSampleKernel.cpp) for bilinear with antialias.
void MakeFilter(int32_t input, int32_t output, Filter* filter) {
  const double scale = double(input) / output;
  const double support = scale >= 1 ? scale : 1;
  const double inverse = scale >= 1 ? 1 / scale : 1;
  filter->stride = int32_t(support) * 2 + 3;
  filter->taps.resize(size_t(output));
  filter->exact.assign(size_t(output) * size_t(filter->stride), 0.0);
  double largest = 0;
  for (int32_t i = 0; i < output; ++i) {
    const double center = scale * (i + 0.5);
    const int32_t first = std::max(int32_t(center - support + 0.5), 0);
    const int32_t count = std::min(int32_t(center + support + 0.5), input) - first;
    double* weights = &filter->exact[size_t(i) * size_t(filter->stride)];
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
  filter->weights.resize(filter->exact.size());
  for (size_t i = 0; i < filter->exact.size(); ++i) {
    filter->weights[i] = int16_t(0.5 + filter->exact[i] * (1 << filter->precision));
  }
}

uint8_t Round(int32_t sum, int32_t precision) {
  return uint8_t(std::clamp(sum >> precision, 0, 255));
}

template <int kChannels>
void HorizontalRow(const uint8_t* in, const Filter& filter, uint8_t* out) {
  const int32_t half = 1 << (filter.precision - 1);
  for (size_t x = 0; x < filter.taps.size(); ++x) {
    const Taps taps = filter.taps[x];
    const int16_t* weights = &filter.weights[x * size_t(filter.stride)];
    const uint8_t* pixel = in + size_t(taps.first) * kChannels;
    int32_t sum[kChannels];
    for (int c = 0; c < kChannels; ++c) sum[c] = half;
    for (int32_t j = 0; j < taps.count; ++j) {
      for (int c = 0; c < kChannels; ++c) sum[c] += pixel[c] * weights[j];
      pixel += kChannels;
    }
    for (int c = 0; c < kChannels; ++c) *out++ = Round(sum[c], filter.precision);
  }
}

void HorizontalRowOfAny(const uint8_t* in, const Filter& filter, int32_t channels, uint8_t* out) {
  const int32_t half = 1 << (filter.precision - 1);
  for (size_t x = 0; x < filter.taps.size(); ++x) {
    const Taps taps = filter.taps[x];
    const int16_t* weights = &filter.weights[x * size_t(filter.stride)];
    for (int32_t c = 0; c < channels; ++c) {
      int32_t sum = half;
      for (int32_t j = 0; j < taps.count; ++j) {
        sum += in[size_t(taps.first + j) * size_t(channels) + size_t(c)] * weights[j];
      }
      *out++ = Round(sum, filter.precision);
    }
  }
}

// Rows [0, height) at `in`, `stride` bytes apart, into `out` without gaps.
void HorizontalPass(const uint8_t* in, size_t stride, int32_t height, int32_t channels,
                    const Filter& filter, uint8_t* out) {
  for (int32_t y = 0; y < height; ++y) {
    if (channels == 3) {
      HorizontalRow<3>(in, filter, out);
    } else if (channels == 1) {
      HorizontalRow<1>(in, filter, out);
    } else {
      HorizontalRowOfAny(in, filter, channels, out);
    }
    in += stride;
    out += filter.taps.size() * size_t(channels);
  }
}

void VerticalPass(const uint8_t* in, size_t stride, size_t row_bytes, const Filter& filter,
                  uint8_t* out) {
  static thread_local std::vector<int32_t> sums;
  sums.resize(row_bytes);
  int32_t* const sum = sums.data();
  for (size_t y = 0; y < filter.taps.size(); ++y) {
    const Taps taps = filter.taps[y];
    std::fill_n(sum, row_bytes, 1 << (filter.precision - 1));
    for (int32_t j = 0; j < taps.count; ++j) {
      const int16_t weight = filter.weights[y * size_t(filter.stride) + size_t(j)];
      const uint8_t* row = in + size_t(taps.first + j) * stride;
      for (size_t x = 0; x < row_bytes; ++x) sum[x] += int16_t(row[x]) * weight;
    }
    for (size_t x = 0; x < row_bytes; ++x) out[x] = Round(sum[x], filter.precision);
    out += row_bytes;
  }
}

void Bilinear(const uint8_t* in, size_t stride, const Box& box, Image* out) {
  static thread_local Filter horizontal;
  static thread_local Filter vertical;
  static thread_local std::vector<uint8_t> narrowed;
  const int32_t channels = out->shape.channels;
  const bool same_height = box.height == out->shape.height;
  if (box.width != out->shape.width) {
    MakeFilter(box.width, out->shape.width, &horizontal);
    if (!same_height) narrowed.resize(size_t(box.height) * out->row_bytes());
    uint8_t* target = same_height ? out->bytes.data() : narrowed.data();
    HorizontalPass(in, stride, box.height, channels, horizontal, target);
    in = target;
    stride = out->row_bytes();
  }
  if (!same_height) {
    MakeFilter(box.height, out->shape.height, &vertical);
    VerticalPass(in, stride, out->row_bytes(), vertical, out->bytes.data());
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

}  // namespace hetero::pipeline
