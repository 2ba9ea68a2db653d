#include "runtime/pipeline/gaussian_blur.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/gaussian_blur_kernel.h"

namespace hetero::pipeline {
namespace {

constexpr uint32_t kWeightOne = 1u << 15;

}  // namespace

void GaussianWeights(int32_t kernel_size, double sigma, std::vector<uint16_t>* weights) {
  const int32_t radius = kernel_size / 2;
  double total = 1;
  const auto density = [sigma](int32_t i) {
    const double x = i / sigma;
    return ExactExp(-x * x / 2);
  };
  for (int32_t i = 1; i <= radius; ++i) total += 2 * density(i);
  weights->assign(size_t(radius) + 1, 0);
  uint32_t rest = kWeightOne;
  for (int32_t i = radius; i >= 1; --i) {
    // Never more than what is left: rounding up many equal weights could exceed one.
    const uint32_t weight =
        std::min(uint32_t(RoundHalfEven(density(i) / total * kWeightOne)), rest / 2);
    (*weights)[size_t(i)] = uint16_t(weight);
    rest -= 2 * weight;
  }
  (*weights)[0] = uint16_t(rest);
}

void Blur(const ImageView& in, int32_t kernel_size, double sigma, Image* out) {
  static thread_local std::vector<uint16_t> weights;
  GaussianWeights(kernel_size, sigma, &weights);
  BlurWithWeights(in, weights, out);
}

absl::StatusOr<api::ImageShape> GaussianBlur::OutputShape(const api::ImageShape& input) const {
  if (input.height > 0 && std::min(input.height, input.width) <= kernel_size_ / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernelSize ", kernel_size_, " reflects ", kernel_size_ / 2,
                     " pixels, but the picture is only ", ToString(input),
                     "; choose a smaller kernelSize or resize first"));
  }
  return input;
}

absl::Status GaussianBlur::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  const auto shape = OutputShape(in.shape);
  if (!shape.ok()) {
    return absl::DataLossError(absl::StrCat("GaussianBlur: ", shape.status().message()));
  }
  Blur(in, kernel_size_, random.Uniform(sigma_.min, sigma_.max), out);
  return absl::OkStatus();
}

}  // namespace hetero::pipeline
