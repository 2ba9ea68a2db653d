#include "runtime/pipeline/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/status_macros.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/parameter_checks.h"

namespace hetero::pipeline {
namespace {

constexpr int kAttempts = 10;

// Where the crop of one axis begins in the picture; negative when the picture is padded in front.
int32_t CropStart(int32_t input, int32_t output) {
  if (output > input) return -((output - input) / 2);
  return int32_t(RoundHalfEven((input - output) / 2.0));
}

Box CentralBox(const api::Size& size, const api::Range& ratio) {
  const double in_ratio = double(size.width) / size.height;
  Box box{0, 0, size.height, size.width};
  if (in_ratio < ratio.min) {
    box.height = int32_t(RoundHalfEven(size.width / ratio.min));
  } else if (in_ratio > ratio.max) {
    box.width = int32_t(RoundHalfEven(size.height * ratio.max));
  }
  // A picture one pixel wide rounds to an empty box under an extreme ratio.
  box.height = std::clamp(box.height, 1, size.height);
  box.width = std::clamp(box.width, 1, size.width);
  box.top = (size.height - box.height) / 2;
  box.left = (size.width - box.width) / 2;
  return box;
}

}  // namespace

void CropCenter(const ImageView& in, const api::Size& size, Image* out) {
  out->Reshape({size.height, size.width, in.shape.channels});
  const size_t channels = size_t(in.shape.channels);
  const int32_t top = CropStart(in.shape.height, size.height);
  const int32_t left = CropStart(in.shape.width, size.width);
  const int32_t first = std::max(0, -left);
  const int32_t count = std::min(size.width, in.shape.width);
  for (int32_t y = 0; y < size.height; ++y) {
    uint8_t* target = out->row(y);
    const int32_t source_y = y + top;
    if (source_y < 0 || source_y >= in.shape.height) {
      std::memset(target, 0, out->row_bytes());
      continue;
    }
    const size_t before = size_t(first) * channels;
    const size_t middle = size_t(count) * channels;
    std::memset(target, 0, before);
    std::memcpy(target + before, in.row(source_y) + size_t(std::max(0, left)) * channels, middle);
    std::memset(target + before + middle, 0, out->row_bytes() - before - middle);
  }
}

Box DrawCrop(const api::Size& size, const api::Range& scale, const api::Range& ratio,
             job::RandomStream& random) {
  const double area = double(size.height) * size.width;
  const double log_min = ExactLog(ratio.min);
  const double log_max = ExactLog(ratio.max);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target_area = area * random.Uniform(scale.min, scale.max);
    const double aspect = ExactExp(random.Uniform(log_min, log_max));
    const int64_t width = RoundHalfEven(std::sqrt(target_area * aspect));
    const int64_t height = RoundHalfEven(std::sqrt(target_area / aspect));
    if (width < 1 || width > size.width || height < 1 || height > size.height) continue;
    Box box{0, 0, int32_t(height), int32_t(width)};
    box.top = int32_t(random.Below(uint32_t(size.height - box.height + 1)));
    box.left = int32_t(random.Below(uint32_t(size.width - box.width + 1)));
    return box;
  }
  return CentralBox(size, ratio);
}

absl::StatusOr<api::ImageShape> CenterCrop::OutputShape(const api::ImageShape& input) const {
  return api::ImageShape{size_.height, size_.width, input.channels};
}

absl::Status CenterCrop::Apply(const ImageView& in, Image* out, job::RandomStream&) const {
  CropCenter(in, size_, out);
  return absl::OkStatus();
}

absl::StatusOr<api::ImageShape> RandomResizedCrop::OutputShape(const api::ImageShape& input) const {
  return api::ImageShape{size_.height, size_.width, input.channels};
}

absl::Status RandomResizedCrop::Apply(const ImageView& in, Image* out,
                                      job::RandomStream& random) const {
  ResizeBox(in, Region(in.shape, random), size_, interpolation_, out);
  return absl::OkStatus();
}

Box RandomResizedCrop::Region(const api::ImageShape& input, job::RandomStream& random) const {
  return DrawCrop({input.height, input.width}, scale_, ratio_, random);
}

absl::Status RandomResizedCrop::ApplyToRegion(const ImageView& part, const Box& inside, Image* out,
                                              job::RandomStream&) const {
  ResizeBox(part, inside, size_, interpolation_, out);
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeCenterCrop(const api::OperatorSpec& spec, const OperatorContext&) {
  if (absl::Status status = CheckPixels(*spec.size); !status.ok()) return status;
  return One<CenterCrop>(*spec.size);
}

absl::StatusOr<Operators> MakeRandomResizedCrop(const api::OperatorSpec& spec,
                                                const OperatorContext& context) {
  HETERO_RETURN_IF_ERROR(CheckPixels(*spec.size));
  HETERO_RETURN_IF_ERROR(CheckAtLeast("scale", *spec.scale, kMinScale));
  HETERO_RETURN_IF_ERROR(CheckAtLeast("ratio", *spec.ratio, kMinRatio));
  if (context.split == job::Split::kTrain) {
    return One<RandomResizedCrop>(*spec.size, *spec.scale, *spec.ratio, *spec.interpolation);
  }
  const int32_t edge = std::min(spec.size->height, spec.size->width);
  Operators operators =
      One<Resize>(int32_t(RoundHalfEven(edge * 256.0 / 224.0)), *spec.interpolation);
  operators.push_back(std::make_unique<CenterCrop>(*spec.size));
  return operators;
}

}  // namespace hetero::pipeline
