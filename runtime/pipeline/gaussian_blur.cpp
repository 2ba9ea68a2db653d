#include "runtime/pipeline/gaussian_blur.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/gaussian_blur_kernel.h"
#include "runtime/pipeline/parameter_checks.h"

namespace hetero::pipeline {
namespace {

constexpr uint32_t kWeightOne = 1u << 15;
// Keeps the Gaussian's exponents and weights in their normal range.
constexpr double kMinSigma = 1e-3;

// Keeps its memory from one picture to the next.
std::vector<uint16_t>& WeightScratch() {
  static thread_local std::vector<uint16_t> weights;
  return weights;
}

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
  std::vector<uint16_t>& weights = WeightScratch();
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

absl::Status GaussianBlur::DrawWeights(const api::ImageShape& shape, job::RandomStream& random,
                                       std::vector<uint16_t>* weights) const {
  const auto blurred = OutputShape(shape);
  if (!blurred.ok()) {
    return absl::DataLossError(absl::StrCat("GaussianBlur: ", blurred.status().message()));
  }
  GaussianWeights(kernel_size_, random.Uniform(sigma_.min, sigma_.max), weights);
  return absl::OkStatus();
}

absl::Status GaussianBlur::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  std::vector<uint16_t>& weights = WeightScratch();
  absl::Status status = DrawWeights(in.shape, random, &weights);
  if (status.ok()) BlurWithWeights(in, weights, out);
  return status;
}

absl::Status GaussianBlur::Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                                     ImageView* result) const {
  std::vector<uint16_t>& weights = WeightScratch();
  if (absl::Status status = DrawWeights(in.shape, random, &weights); !status.ok()) return status;
  if (BlursNothing(weights)) {
    *result = in;
  } else {
    BlurWithWeights(in, weights, scratch);
    *result = scratch->view();
  }
  return absl::OkStatus();
}

absl::Status GaussianBlur::ApplyTo(const ImageView& in, uint8_t* out,
                                   job::RandomStream& random) const {
  std::vector<uint16_t>& weights = WeightScratch();
  absl::Status status = DrawWeights(in.shape, random, &weights);
  if (status.ok()) BlurWithWeights(in, weights, out);
  return status;
}

absl::StatusOr<Operators> MakeGaussianBlur(const api::OperatorSpec& spec,
                                           const OperatorContext& context) {
  api::Range sigma = *spec.sigma;
  if (absl::Status status = CheckAtLeast("sigma", sigma, kMinSigma); !status.ok()) return status;
  if (context.split == job::Split::kValidation) sigma.min = sigma.max = (sigma.min + sigma.max) / 2;
  return One<GaussianBlur>(*spec.kernel_size, sigma);
}

}  // namespace hetero::pipeline
