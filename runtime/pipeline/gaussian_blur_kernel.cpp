#include "runtime/pipeline/gaussian_blur_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/pipeline/gaussian_blur_kernel.cpp"
#include "hwy/foreach_target.h"
// Must come after foreach_target.h.
#include "hwy/highway.h"

#ifndef HETERO_PIPELINE_GAUSSIAN_BLUR_SCRATCH
#define HETERO_PIPELINE_GAUSSIAN_BLUR_SCRATCH
namespace hetero::pipeline {

// Rows are computed a vector at a time, past their end; no vector is longer than this.
inline constexpr size_t kSlack = 128;
// What the rows between the two passes may take, so that they stay in the first-level cache.
inline constexpr size_t kBandBytes = 24 << 10;
inline constexpr size_t kMinStrip = 128;

struct BlurScratch {
  std::vector<uint16_t> line;         // one strip of one row with its borders, widened
  std::vector<uint16_t> band;         // the last 2 * radius + 1 rows after the first pass
  std::vector<const uint16_t*> taps;  // rows under the kernel, top to bottom
  std::vector<uint32_t> sums;         // of the wide kernel
};

// Elements [begin, end) of every row.
struct Strip {
  size_t begin;
  size_t end;
};

// Vectors that cross a cache line cost twice.
inline constexpr size_t kCacheLine = 64;
constexpr size_t Aligned(size_t size) { return (size + kCacheLine - 1) / kCacheLine * kCacheLine; }
inline uint16_t* AlignUp(uint16_t* p) {
  return reinterpret_cast<uint16_t*>(Aligned(reinterpret_cast<uintptr_t>(p)));
}

// Reflects an index just outside [0, size) back inside; the edge itself is not repeated.
inline int32_t Reflect(int32_t i, int32_t size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace hetero::pipeline
#endif

HWY_BEFORE_NAMESPACE();
namespace hetero::pipeline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// The definition, for machines without any of the instruction sets below.
template <int kRadius>
struct ShortKernel {
  using Line = uint8_t;

  explicit ShortKernel(std::span<const uint16_t> half) : weights(half) {}

  void Widen(const uint8_t* in, size_t size, Line* out) const { std::memcpy(out, in, size); }

  void Horizontal(const Line* in, size_t step, size_t size, BlurScratch&, uint16_t* out) const {
    for (size_t x = 0; x < size; ++x) {
      int32_t sum = Own(in[x] * 64);
      for (size_t i = 1; i <= kRadius; ++i) {
        sum += Times((in[x + i * step] + *(in + x - i * step)) * 64, weights[i]);
      }
      out[x] = uint16_t(sum);
    }
  }

  void Vertical(const uint16_t* const* rows, size_t size, BlurScratch&, uint8_t* out) const {
    for (size_t x = 0; x < size; ++x) {
      int32_t sum = Own(int16_t(rows[kRadius][x]));
      for (size_t i = 1; i <= kRadius; ++i) {
        sum += Times(int16_t(rows[kRadius - i][x]) + int16_t(rows[kRadius + i][x]), weights[i]);
      }
      out[x] = uint8_t((sum + 32) >> 6);
    }
  }

 private:
  static int32_t Times(int32_t value, int32_t weight) { return (value * weight + (1 << 14)) >> 15; }
  int32_t Own(int32_t value) const { return value + Times(value, weights[0] - (1 << 15)); }

  std::span<const uint16_t> weights;
};

#else

using Words = hn::ScalableTag<int16_t>;
using Bytes = hn::ScalableTag<uint8_t>;
using WordVector = hn::VFromD<Words>;
using ByteVector = hn::VFromD<Bytes>;

// (a + b) * 64 of each two neighbouring bytes a, b.
HWY_INLINE WordVector SumPairsTimes64(ByteVector bytes) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return WordVector{_mm512_maddubs_epi16(bytes.raw, _mm512_set1_epi8(64))};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return WordVector{_mm256_maddubs_epi16(bytes.raw, _mm256_set1_epi8(64))};
#elif HWY_TARGET <= HWY_SSSE3 && HWY_ARCH_X86
  return WordVector{_mm_maddubs_epi16(bytes.raw, _mm_set1_epi8(64))};
#else
  const Words d;
  const auto words = hn::BitCast(d, bytes);
  const auto low = hn::And(words, hn::Set(d, int16_t{0xff}));
  const auto high = hn::And(hn::ShiftRight<8>(words), hn::Set(d, int16_t{0xff}));
  return hn::ShiftLeft<6>(hn::Add(low, high));
#endif
}

// Undoes InterleaveLower and InterleaveUpper: bytes in the order before them.
HWY_INLINE ByteVector Pack(WordVector low, WordVector high) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return ByteVector{_mm512_packus_epi16(low.raw, high.raw)};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return ByteVector{_mm256_packus_epi16(low.raw, high.raw)};
#elif HWY_TARGET <= HWY_SSSE3 && HWY_ARCH_X86
  return ByteVector{_mm_packus_epi16(low.raw, high.raw)};
#else
  const hn::Half<Bytes> half;
  return hn::Combine(Bytes(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
}

// 16-bit sums; see kMaxShortRadius. kRadius is a constant so that the taps are unrolled. The rows
// between the passes are stored in the order of InterleaveLower and InterleaveUpper, which Pack()
// puts right.
template <int kRadius>
struct ShortKernel {
  using Line = uint8_t;
  static constexpr int kBits = 6;

  explicit ShortKernel(std::span<const uint16_t> weights) {
    own = int16_t(int32_t{weights[0]} - (1 << 15));
    for (int i = 1; i <= kRadius; ++i) pair[i] = int16_t(weights[size_t(i)]);
  }

  void Widen(const uint8_t* in, size_t size, Line* out) const { std::memcpy(out, in, size); }

  void Horizontal(const Line* in, size_t step, size_t size, BlurScratch&, uint16_t* out) const {
    const Bytes bytes;
    const Words words;
    const ShortKernel kernel = *this;  // nothing can alias a copy, so weights stay in registers
    int16_t* target = reinterpret_cast<int16_t*>(out);
    for (size_t x = 0; x < size; x += hn::Lanes(bytes)) {
      const auto centre = hn::LoadU(bytes, in + x);
      const auto zero = hn::Zero(bytes);
      auto low = kernel.Own(SumPairsTimes64(hn::InterleaveLower(bytes, centre, zero)));
      auto high = kernel.Own(SumPairsTimes64(hn::InterleaveUpper(bytes, centre, zero)));
      for (int i = 1; i <= kRadius; ++i) {
        const auto left = hn::LoadU(bytes, in + x - size_t(i) * step);
        const auto right = hn::LoadU(bytes, in + x + size_t(i) * step);
        const auto weight = hn::Set(words, kernel.pair[i]);
        const auto low_pair = SumPairsTimes64(hn::InterleaveLower(bytes, left, right));
        const auto high_pair = SumPairsTimes64(hn::InterleaveUpper(bytes, left, right));
        low = hn::Add(low, hn::MulFixedPoint15(low_pair, weight));
        high = hn::Add(high, hn::MulFixedPoint15(high_pair, weight));
      }
      hn::StoreU(low, words, target + x);
      hn::StoreU(high, words, target + x + hn::Lanes(words));
    }
  }

  void Vertical(const uint16_t* const* rows, size_t size, BlurScratch&, uint8_t* out) const {
    const Bytes bytes;
    const size_t half = hn::Lanes(Words());
    const ShortKernel kernel = *this;
    const int16_t* taps[2 * kRadius + 1];
    for (int i = 0; i <= 2 * kRadius; ++i) taps[i] = reinterpret_cast<const int16_t*>(rows[i]);
    size_t x = 0;
    for (; x + hn::Lanes(bytes) <= size; x += hn::Lanes(bytes)) {
      hn::StoreU(Pack(kernel.Column(taps, x), kernel.Column(taps, x + half)), bytes, out + x);
    }
    if (x == size) return;
    uint8_t last[kSlack];
    hn::StoreU(Pack(kernel.Column(taps, x), kernel.Column(taps, x + half)), bytes, last);
    std::memcpy(out + x, last, size - x);
  }

 private:
  HWY_INLINE WordVector Own(WordVector centre) const {
    return hn::Add(centre, hn::MulFixedPoint15(centre, hn::Set(Words(), own)));
  }

  HWY_INLINE WordVector Column(const int16_t* const* rows, size_t x) const {
    const Words d;
    auto sum = Own(hn::LoadU(d, rows[kRadius] + x));
    for (int i = 1; i <= kRadius; ++i) {
      const auto above = hn::LoadU(d, rows[kRadius - i] + x);
      const auto below = hn::LoadU(d, rows[kRadius + i] + x);
      sum = hn::Add(sum, hn::MulFixedPoint15(hn::Add(above, below), hn::Set(d, pair[i])));
    }
    return hn::ShiftRight<kBits>(hn::Add(sum, hn::Set(d, int16_t{1 << (kBits - 1)})));
  }

  int16_t own;
  int16_t pair[kRadius + 1];
};

#endif

// 32-bit sums. Plain loops: the compiler vectorises them for each target.
struct WideKernel {
  using Line = uint16_t;
  static constexpr int kBits = 7;

  explicit WideKernel(std::span<const uint16_t> half) : weights(half) {}

  void Widen(const uint8_t* in, size_t size, uint16_t* out) const {
    for (size_t x = 0; x < size; ++x) out[x] = in[x];
  }

  void Horizontal(const uint16_t* in, size_t step, size_t size, BlurScratch& scratch,
                  uint16_t* out) const {
    uint32_t* HWY_RESTRICT sums = scratch.sums.data();
    Start(in, size, sums);
    for (size_t i = 1; i < weights.size(); ++i) {
      AddPair(in - i * step, in + i * step, weights[i], size, sums);
    }
    constexpr int kShift = 15 - kBits;
    for (size_t x = 0; x < size; ++x) out[x] = uint16_t((sums[x] + (1u << (kShift - 1))) >> kShift);
  }

  void Vertical(const uint16_t* const* rows, size_t size, BlurScratch& scratch,
                uint8_t* out) const {
    uint32_t* HWY_RESTRICT sums = scratch.sums.data();
    const size_t radius = weights.size() - 1;
    Start(rows[radius], size, sums);
    for (size_t i = 1; i <= radius; ++i) {
      AddPair(rows[radius - i], rows[radius + i], weights[i], size, sums);
    }
    constexpr int kShift = 15 + kBits;
    for (size_t x = 0; x < size; ++x) out[x] = uint8_t((sums[x] + (1u << (kShift - 1))) >> kShift);
  }

 private:
  void Start(const uint16_t* centre, size_t size, uint32_t* HWY_RESTRICT sums) const {
    const uint32_t weight = weights[0];
    for (size_t x = 0; x < size; ++x) sums[x] = centre[x] * weight;
  }

  // A pair of values of 15 bits fits 16, which lets the compiler multiply 16 bits.
  static void AddPair(const uint16_t* a, const uint16_t* b, uint16_t weight, size_t size,
                      uint32_t* HWY_RESTRICT sums) {
    for (size_t x = 0; x < size; ++x) sums[x] += uint32_t{uint16_t(a[x] + b[x])} * weight;
  }

  std::span<const uint16_t> weights;
};

// Widens one row of a strip, with what the kernel reaches on both sides, and reflects the pixels
// that lie outside the picture. `centre` takes element strip.begin.
template <class Kernel>
void WidenRow(const uint8_t* row, size_t row_size, const Strip& strip, size_t channels, size_t halo,
              const Kernel& kernel, typename Kernel::Line* centre) {
  // One pixel more in front: what is reflected at the right edge may begin before the strip.
  const size_t first = strip.begin - std::min(strip.begin, halo + channels);
  const size_t last = std::min(strip.end + halo, row_size);
  auto* const line = centre - strip.begin;  // as if the whole row were there
  kernel.Widen(row + first, last - first, line + first);
  for (size_t i = channels; i < halo + channels && strip.begin + i < halo + channels;
       i += channels) {
    for (size_t c = 0; c < channels; ++c) *(line + c - i) = line[c + i];
  }
  const auto* mirrored = line + row_size - 2 * channels;
  for (size_t i = row_size; i < strip.end + halo; i += channels, mirrored -= channels) {
    for (size_t c = 0; c < channels; ++c) line[i + c] = mirrored[c];
  }
}

// Both passes over one strip: a row enters the band when the first output row needs it, so that
// what lies between the passes never leaves the cache.
template <class Kernel>
void BlurStrip(const ImageView& in, const Strip& strip, int32_t radius, const Kernel& kernel,
               BlurScratch& scratch, uint8_t* out) {
  const size_t channels = size_t(in.shape.channels);
  const size_t halo = size_t(radius) * channels;
  const size_t size = strip.end - strip.begin;
  const int32_t height = in.shape.height;
  const int32_t band_rows = 2 * radius + 1;
  const size_t front = Aligned(halo + channels);
  const size_t stride = Aligned(size) + kSlack;
  scratch.line.resize(front + size + halo + channels + 2 * kSlack);
  scratch.band.resize(size_t(band_rows) * stride + kSlack);
  scratch.taps.resize(size_t(band_rows));
  scratch.sums.resize(size);
  auto* const centre =
      reinterpret_cast<typename Kernel::Line*>(AlignUp(scratch.line.data())) + front;
  uint16_t* const band = AlignUp(scratch.band.data());
  int32_t ready = 0;
  for (int32_t y = 0; y < height; ++y) {
    for (; ready < std::min(y + radius + 1, height); ++ready) {
      WidenRow(in.row(ready), in.row_bytes(), strip, channels, halo, kernel, centre);
      kernel.Horizontal(centre, channels, size, scratch, band + size_t(ready % band_rows) * stride);
    }
    for (int32_t k = -radius; k <= radius; ++k) {
      scratch.taps[size_t(k + radius)] = band + size_t(Reflect(y + k, height) % band_rows) * stride;
    }
    kernel.Vertical(scratch.taps.data(), size, scratch,
                    out + size_t(y) * in.row_bytes() + strip.begin);
  }
}

template <class Kernel>
void BlurAll(const ImageView& in, std::span<const uint16_t> weights, BlurScratch& scratch,
             uint8_t* out) {
  const Kernel kernel(weights);
  const int32_t radius = int32_t(weights.size()) - 1;
  const size_t row_size = in.row_bytes();
  const size_t fitting = kBandBytes / sizeof(uint16_t) / size_t(2 * radius + 1);
  const size_t strips = (row_size - 1) / std::max(fitting, kMinStrip) + 1;
  const size_t width = (row_size / strips + 63) / 64 * 64;
  for (size_t begin = 0; begin < row_size; begin += width) {
    BlurStrip(in, {begin, std::min(begin + width, row_size)}, radius, kernel, scratch, out);
  }
}

void BlurFor(const ImageView& in, std::span<const uint16_t> weights, BlurScratch& scratch,
             uint8_t* out) {
  static_assert(kMaxShortRadius == 6);
  switch (weights.size() - 1) {
    case 1:
      return BlurAll<ShortKernel<1>>(in, weights, scratch, out);
    case 2:
      return BlurAll<ShortKernel<2>>(in, weights, scratch, out);
    case 3:
      return BlurAll<ShortKernel<3>>(in, weights, scratch, out);
    case 4:
      return BlurAll<ShortKernel<4>>(in, weights, scratch, out);
    case 5:
      return BlurAll<ShortKernel<5>>(in, weights, scratch, out);
    case 6:
      return BlurAll<ShortKernel<6>>(in, weights, scratch, out);
    default:
      return BlurAll<WideKernel>(in, weights, scratch, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hetero::pipeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetero::pipeline {

HWY_EXPORT(BlurFor);

bool BlursNothing(std::span<const uint16_t> weights) {
  return std::all_of(weights.begin() + 1, weights.end(), [](uint16_t w) { return w == 0; });
}

void BlurWithWeights(const ImageView& in, std::span<const uint16_t> weights, uint8_t* out) {
  // A weight of zero adds nothing: small sigmas need only a part of the kernel.
  while (weights.size() > 1 && weights.back() == 0) weights = weights.first(weights.size() - 1);
  if (weights.size() == 1) {
    std::memcpy(out, in.data, size_t(ByteSize(in.shape)));
    return;
  }
  static thread_local BlurScratch scratch;
  HWY_DYNAMIC_DISPATCH(BlurFor)(in, weights, scratch, out);
}

void BlurWithWeights(const ImageView& in, std::span<const uint16_t> weights, Image* out) {
  out->Reshape(in.shape);
  BlurWithWeights(in, weights, out->bytes.data());
}

}  // namespace hetero::pipeline
#endif
