#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Half of a symmetric Gaussian kernel: weights[0] is the centre, weights[i] both taps at distance
// i; 15 fractional bits, the whole kernel sums to exactly 2^15. `kernel_size` odd, `sigma` > 0
// pixels.
void GaussianWeights(int32_t kernel_size, double sigma, std::vector<uint16_t>* weights);

// torchvision's gaussian_blur with a square kernel: borders reflected without repeating the edge
// pixel, rounded to nearest. Both edges of `in` exceed kernel_size / 2.
void Blur(const ImageView& in, int32_t kernel_size, double sigma, Image* out);

// Blur with sigma uniform in its range.
class GaussianBlur final : public Operator {
 public:
  GaussianBlur(int32_t kernel_size, const api::Range& sigma)
      : kernel_size_(kernel_size), sigma_(sigma) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;
  absl::Status Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                         ImageView* result) const override;
  bool writes_anywhere() const override { return true; }
  absl::Status ApplyTo(const ImageView& in, uint8_t* out, job::RandomStream& random) const override;

 private:
  absl::Status DrawWeights(const api::ImageShape& shape, job::RandomStream& random,
                           std::vector<uint16_t>* weights) const;

  int32_t kernel_size_;
  api::Range sigma_;
};

absl::StatusOr<Operators> MakeGaussianBlur(const api::OperatorSpec& spec,
                                           const OperatorContext& context);

}  // namespace hetero::pipeline
