#include "runtime/pipeline/gaussian_blur.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/exact_math.h"

namespace hetero::pipeline {
namespace {

// Fractional bits of a weight, and of a value between the two passes. The sum of a symmetric pair
// of such values still fits uint16, which lets the compiler use 16-bit multiplications.
constexpr int kWeightBits = 15;
constexpr int kValueBits = 7;
constexpr uint32_t kWeightOne = 1u << kWeightBits;

// Reflects an index just outside [0, size) back inside; the edge itself is not repeated.
int32_t Reflect(int32_t i, int32_t size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

// sums[i] = weight * centre[i].
template <typename T>
void StartSum(const T* __restrict centre, uint16_t weight, size_t size, uint32_t* __restrict sums) {
  for (size_t i = 0; i < size; ++i) sums[i] = uint32_t{centre[i]} * weight;
}

// sums[i] += weight * (a[i] + b[i]).
template <typename T>
void AddPair(const T* __restrict a, const T* __restrict b, uint16_t weight, size_t size,
             uint32_t* __restrict sums) {
  for (size_t i = 0; i < size; ++i) {
    const uint16_t pair = uint16_t(a[i] + b[i]);
    sums[i] += uint32_t{pair} * weight;
  }
}

struct Scratch {
  std::vector<uint16_t> weights;
  std::vector<uint8_t> padded;    // one row with reflected borders
  std::vector<uint16_t> blurred;  // all rows after the horizontal pass, kValueBits
  std::vector<uint32_t> sums;
};

void HorizontalPass(const ImageView& in, Scratch* scratch) {
  const size_t channels = size_t(in.shape.channels);
  const int32_t radius = int32_t(scratch->weights.size()) - 1;
  const size_t size = in.row_bytes();
  scratch->padded.resize(size + 2 * size_t(radius) * channels);
  scratch->blurred.resize(size * size_t(in.shape.height));
  uint8_t* const centre = scratch->padded.data() + size_t(radius) * channels;
  for (int32_t y = 0; y < in.shape.height; ++y) {
    const uint8_t* row = in.row(y);
    std::copy_n(row, size, centre);
    for (int32_t x = 1; x <= radius; ++x) {
      const size_t right = size_t(Reflect(in.shape.width - 1 + x, in.shape.width));
      std::copy_n(row + size_t(x) * channels, channels, centre - size_t(x) * channels);
      std::copy_n(row + right * channels, channels, centre + size + size_t(x - 1) * channels);
    }
    StartSum(centre, scratch->weights[0], size, scratch->sums.data());
    for (size_t k = 1; k < scratch->weights.size(); ++k) {
      AddPair(centre - k * channels, centre + k * channels, scratch->weights[k], size,
              scratch->sums.data());
    }
    constexpr int kShift = kWeightBits - kValueBits;
    uint16_t* out = scratch->blurred.data() + size_t(y) * size;
    for (size_t i = 0; i < size; ++i) {
      out[i] = uint16_t((scratch->sums[i] + (1u << (kShift - 1))) >> kShift);
    }
  }
}

void VerticalPass(Scratch* scratch, Image* out) {
  const size_t size = out->row_bytes();
  const int32_t height = out->shape.height;
  const auto row = [&](int32_t y) {
    return scratch->blurred.data() + size_t(Reflect(y, height)) * size;
  };
  for (int32_t y = 0; y < height; ++y) {
    StartSum(row(y), scratch->weights[0], size, scratch->sums.data());
    for (int32_t k = 1; k < int32_t(scratch->weights.size()); ++k) {
      AddPair(row(y - k), row(y + k), scratch->weights[size_t(k)], size, scratch->sums.data());
    }
    constexpr int kShift = kWeightBits + kValueBits;
    uint8_t* target = out->row(y);
    for (size_t i = 0; i < size; ++i) {
      target[i] = uint8_t((scratch->sums[i] + (1u << (kShift - 1))) >> kShift);
    }
  }
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
  static thread_local Scratch scratch;
  GaussianWeights(kernel_size, sigma, &scratch.weights);
  scratch.sums.resize(in.row_bytes());
  out->Reshape(in.shape);
  HorizontalPass(in, &scratch);
  VerticalPass(&scratch, out);
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
