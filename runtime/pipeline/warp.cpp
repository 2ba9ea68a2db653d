#include "runtime/pipeline/warp.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/exact_math.h"

namespace hetero::pipeline {
namespace {

// Coordinates count half pixels in units of 2^-32, so that a centre between two pixels is whole.
constexpr int kFraction = 33;
constexpr int64_t kPixel = int64_t{1} << kFraction;
// Fractional bits of a bilinear weight.
constexpr int kWeightBits = 12;

int64_t Fixed(double coefficient) { return RoundHalfEven(coefficient * (double(kPixel) / 2)); }

// One axis of the map in those units.
struct Axis {
  int64_t start;  // of the row's first pixel
  int64_t step;   // from pixel to pixel
};

Axis AxisOfRow(double along_x, double along_y, double offset, int32_t size,
               const api::ImageShape& shape, int32_t y) {
  const int64_t step = Fixed(along_x);
  return {-step * (shape.width - 1) + Fixed(along_y) * (2 * y - (shape.height - 1)) +
              2 * Fixed(offset) + int64_t{size - 1} * (kPixel / 2),
          2 * step};
}

int64_t RoundedPixel(int64_t position) {
  const int64_t up = position + kPixel / 2;
  const int64_t pixel = up >> kFraction;
  return (up & (kPixel - 1)) == 0 ? pixel - (pixel & 1) : pixel;
}

void NearestRow(const ImageView& in, Axis x, Axis y, uint8_t* out) {
  const size_t channels = size_t(in.shape.channels);
  for (int32_t i = 0; i < in.shape.width; ++i, out += channels) {
    const int64_t column = RoundedPixel(x.start + i * x.step);
    const int64_t row = RoundedPixel(y.start + i * y.step);
    if (column < 0 || column >= in.shape.width || row < 0 || row >= in.shape.height) {
      std::memset(out, 0, channels);
      continue;
    }
    const uint8_t* pixel = in.row(int32_t(row)) + size_t(column) * channels;
    for (size_t c = 0; c < channels; ++c) out[c] = pixel[c];
  }
}

void BilinearRow(const ImageView& in, Axis x, Axis y, uint8_t* out) {
  const size_t channels = size_t(in.shape.channels);
  constexpr int32_t kOne = 1 << kWeightBits;
  for (int32_t i = 0; i < in.shape.width; ++i, out += channels) {
    const int64_t px = x.start + i * x.step, py = y.start + i * y.step;
    const int64_t column = px >> kFraction, row = py >> kFraction;
    if (column < -1 || column >= in.shape.width || row < -1 || row >= in.shape.height) {
      std::memset(out, 0, channels);
      continue;
    }
    const auto fraction = [](int64_t position) {
      return int32_t((position & (kPixel - 1)) >> (kFraction - kWeightBits));
    };
    const int32_t wx = fraction(px), wy = fraction(py);
    const int32_t weights[2][2] = {{(kOne - wy) * (kOne - wx), (kOne - wy) * wx},
                                   {wy * (kOne - wx), wy * wx}};
    for (size_t c = 0; c < channels; ++c) {
      int64_t sum = int64_t{1} << (2 * kWeightBits - 1);
      for (int dy = 0; dy < 2; ++dy) {
        for (int dx = 0; dx < 2; ++dx) {
          const int64_t sx = column + dx, sy = row + dy;
          if (sx < 0 || sx >= in.shape.width || sy < 0 || sy >= in.shape.height) continue;
          sum += int64_t{weights[dy][dx]} * in.row(int32_t(sy))[size_t(sx) * channels + c];
        }
      }
      out[c] = uint8_t(sum >> (2 * kWeightBits));
    }
  }
}

}  // namespace

AffineMap Rotation(double degrees) {
  const SinCos turn = ExactSinCos(degrees);
  return {.xx = turn.cos, .xy = -turn.sin, .yx = turn.sin, .yy = turn.cos};
}

void Warp(const ImageView& in, const AffineMap& map, api::Interpolation interpolation, Image* out) {
  out->Reshape(in.shape);
  for (int32_t y = 0; y < in.shape.height; ++y) {
    const Axis axis_x = AxisOfRow(map.xx, map.xy, map.x0, in.shape.width, in.shape, y);
    const Axis axis_y = AxisOfRow(map.yx, map.yy, map.y0, in.shape.height, in.shape, y);
    if (interpolation == api::Interpolation::kNearest) {
      NearestRow(in, axis_x, axis_y, out->row(y));
    } else {
      BilinearRow(in, axis_x, axis_y, out->row(y));
    }
  }
}

absl::StatusOr<api::ImageShape> Rotate::OutputShape(const api::ImageShape& input) const {
  if (std::max(input.height, input.width) > kMaxWarpEdge) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes edges up to ", kMaxWarpEdge, " pixels, not ", ToString(input), "; resize first"));
  }
  return input;
}

absl::Status Rotate::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  if (const auto shape = OutputShape(in.shape); !shape.ok()) {
    return absl::DataLossError(absl::StrCat("Rotate ", shape.status().message()));
  }
  Warp(in, Rotation(random.Uniform(degrees_.min, degrees_.max)), interpolation_, out);
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeRotate(const api::OperatorSpec& spec,
                                     const OperatorContext& context) {
  if (context.split == job::Split::kValidation) return Operators();
  return One<Rotate>(*spec.degrees, *spec.interpolation);
}

}  // namespace hetero::pipeline
