#include "runtime/pipeline/flip.h"

#include <algorithm>

namespace hetero::pipeline {

namespace {

// `kChannels` 0: `channels` of them.
template <size_t kChannels>
void MirrorRows(const ImageView& in, size_t channels, Image* out) {
  const size_t step = kChannels == 0 ? channels : kChannels;
  for (int32_t y = 0; y < in.shape.height; ++y) {
    const uint8_t* source = in.row(y);
    uint8_t* target = out->row(y) + out->row_bytes();
    for (int32_t x = 0; x < in.shape.width; ++x) {
      target -= step;
      std::copy_n(source, step, target);
      source += step;
    }
  }
}

}  // namespace

void FlipHorizontally(const ImageView& in, Image* out) {
  out->Reshape(in.shape);
  const size_t channels = size_t(in.shape.channels);
  if (channels == 3) return MirrorRows<3>(in, channels, out);
  if (channels == 1) return MirrorRows<1>(in, channels, out);
  MirrorRows<0>(in, channels, out);
}

void FlipVertically(const ImageView& in, Image* out) {
  out->Reshape(in.shape);
  for (int32_t y = 0; y < in.shape.height; ++y) {
    std::copy_n(in.row(in.shape.height - 1 - y), in.row_bytes(), out->row(y));
  }
}

absl::StatusOr<api::ImageShape> HorizontalFlip::OutputShape(const api::ImageShape& input) const {
  return input;
}

absl::Status HorizontalFlip::Apply(const ImageView& in, Image* out,
                                   job::RandomStream& random) const {
  if (random.NextDouble() < probability_) {
    FlipHorizontally(in, out);
  } else {
    Copy(in, out);
  }
  return absl::OkStatus();
}

absl::Status HorizontalFlip::Transform(const ImageView& in, Image* scratch,
                                       job::RandomStream& random, ImageView* result) const {
  const bool flips = random.NextDouble() < probability_;
  if (flips) FlipHorizontally(in, scratch);
  *result = flips ? scratch->view() : in;
  return absl::OkStatus();
}

absl::StatusOr<api::ImageShape> VerticalFlip::OutputShape(const api::ImageShape& input) const {
  return input;
}

absl::Status VerticalFlip::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  if (random.NextDouble() < probability_) {
    FlipVertically(in, out);
  } else {
    Copy(in, out);
  }
  return absl::OkStatus();
}

absl::Status VerticalFlip::Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                                     ImageView* result) const {
  const bool flips = random.NextDouble() < probability_;
  if (flips) FlipVertically(in, scratch);
  *result = flips ? scratch->view() : in;
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeHorizontalFlip(const api::OperatorSpec& spec,
                                             const OperatorContext& context) {
  if (context.split == job::Split::kValidation) return Operators();
  return One<HorizontalFlip>(*spec.probability);
}

absl::StatusOr<Operators> MakeVerticalFlip(const api::OperatorSpec& spec,
                                           const OperatorContext& context) {
  if (context.split == job::Split::kValidation) return Operators();
  return One<VerticalFlip>(*spec.probability);
}

}  // namespace hetero::pipeline
