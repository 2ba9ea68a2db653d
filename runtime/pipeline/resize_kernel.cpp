#include "runtime/pipeline/resize_kernel.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/pipeline/resize_kernel.cpp"
#include "hwy/foreach_target.h"
// Must come after foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hetero::pipeline {
namespace HWY_NAMESPACE {

HWY_INLINE uint8_t Rounded(int32_t sum, int32_t precision) {
  return uint8_t(std::clamp(sum >> precision, 0, 255));
}

// The definition, for any number of channels.
void HorizontalRow(const uint8_t* in, const ResizeFilter& filter, int32_t channels, uint8_t* out) {
  for (size_t x = 0; x < filter.taps.size(); ++x) {
    const Taps taps = filter.taps[x];
    const int16_t* weights = &filter.weights[x * size_t(filter.stride)];
    for (int32_t c = 0; c < channels; ++c) {
      int32_t sum = 1 << (filter.precision - 1);
      for (int32_t j = 0; j < taps.count; ++j) {
        sum += in[size_t(taps.first + j) * size_t(channels) + size_t(c)] * weights[j];
      }
      *out++ = Rounded(sum, filter.precision);
    }
  }
}

void VerticalColumns(const PixelRows& in, const ResizeFilter& filter, size_t y, uint8_t* out) {
  const Taps taps = filter.taps[y];
  const int16_t* weights = &filter.weights[y * size_t(filter.stride)];
  const size_t row_bytes = size_t(in.width) * size_t(in.channels);
  for (size_t x = 0; x < row_bytes; ++x) {
    int32_t sum = 1 << (filter.precision - 1);
    for (int32_t j = 0; j < taps.count; ++j) {
      sum += in.data[size_t(taps.first + j) * in.stride + x] * weights[j];
    }
    out[x] = Rounded(sum, filter.precision);
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
namespace hn = hwy::HWY_NAMESPACE;

// A vector of interleaved 16-bit pairs times pairs of weights, each pair summed in 32 bits; and the
// narrowing that undoes the interleaving. Highway promises no order for these.
using Bytes = hn::ScalableTag<uint8_t>;
using ByteVector = hn::VFromD<Bytes>;
#if HWY_TARGET <= HWY_AVX3
using Raw = __m512i;
HWY_INLINE Raw MulPairs(Raw v, Raw w) { return _mm512_madd_epi16(v, w); }
HWY_INLINE Raw Add(Raw a, Raw b) { return _mm512_add_epi32(a, b); }
HWY_INLINE Raw All(int32_t v) { return _mm512_set1_epi32(v); }
HWY_INLINE Raw Low8(Raw a, Raw b) { return _mm512_unpacklo_epi8(a, b); }
HWY_INLINE Raw High8(Raw a, Raw b) { return _mm512_unpackhi_epi8(a, b); }
HWY_INLINE Raw Shift(Raw v, __m128i n) { return _mm512_sra_epi32(v, n); }
HWY_INLINE Raw Pack32(Raw a, Raw b) { return _mm512_packs_epi32(a, b); }
HWY_INLINE Raw Pack16(Raw a, Raw b) { return _mm512_packus_epi16(a, b); }
#elif HWY_TARGET <= HWY_AVX2
using Raw = __m256i;
HWY_INLINE Raw MulPairs(Raw v, Raw w) { return _mm256_madd_epi16(v, w); }
HWY_INLINE Raw Add(Raw a, Raw b) { return _mm256_add_epi32(a, b); }
HWY_INLINE Raw All(int32_t v) { return _mm256_set1_epi32(v); }
HWY_INLINE Raw Low8(Raw a, Raw b) { return _mm256_unpacklo_epi8(a, b); }
HWY_INLINE Raw High8(Raw a, Raw b) { return _mm256_unpackhi_epi8(a, b); }
HWY_INLINE Raw Shift(Raw v, __m128i n) { return _mm256_sra_epi32(v, n); }
HWY_INLINE Raw Pack32(Raw a, Raw b) { return _mm256_packs_epi32(a, b); }
HWY_INLINE Raw Pack16(Raw a, Raw b) { return _mm256_packus_epi16(a, b); }
#else
using Raw = __m128i;
HWY_INLINE Raw MulPairs(Raw v, Raw w) { return _mm_madd_epi16(v, w); }
HWY_INLINE Raw Add(Raw a, Raw b) { return _mm_add_epi32(a, b); }
HWY_INLINE Raw All(int32_t v) { return _mm_set1_epi32(v); }
HWY_INLINE Raw Low8(Raw a, Raw b) { return _mm_unpacklo_epi8(a, b); }
HWY_INLINE Raw High8(Raw a, Raw b) { return _mm_unpackhi_epi8(a, b); }
HWY_INLINE Raw Shift(Raw v, __m128i n) { return _mm_sra_epi32(v, n); }
HWY_INLINE Raw Pack32(Raw a, Raw b) { return _mm_packs_epi32(a, b); }
HWY_INLINE Raw Pack16(Raw a, Raw b) { return _mm_packus_epi16(a, b); }
#endif

HWY_INLINE int32_t WeightPair(const int16_t* weights) {
  int32_t pair;
  std::memcpy(&pair, weights, sizeof(pair));
  return pair;
}

// Three channels: four taps are twelve bytes, shuffled into 16-bit pairs per channel.
constexpr size_t kTapBytes = 16;

// One row per 128-bit lane.
constexpr int32_t kLanes = sizeof(Raw) / 16;

HWY_INLINE __m128i Load16(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

#if HWY_TARGET <= HWY_AVX3
HWY_INLINE Raw LoadLanes(const uint8_t* const* rows, size_t offset) {
  const Raw two = _mm512_inserti32x4(_mm512_castsi128_si512(Load16(rows[0] + offset)),
                                     Load16(rows[1] + offset), 1);
  const Raw three = _mm512_inserti32x4(two, Load16(rows[2] + offset), 2);
  return _mm512_inserti32x4(three, Load16(rows[3] + offset), 3);
}
HWY_INLINE Raw Shuffle(Raw v, __m128i order) {
  return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(order));
}
#elif HWY_TARGET <= HWY_AVX2
HWY_INLINE Raw LoadLanes(const uint8_t* const* rows, size_t offset) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(Load16(rows[0] + offset)),
                                 Load16(rows[1] + offset), 1);
}
HWY_INLINE Raw Shuffle(Raw v, __m128i order) {
  return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
}
#else
HWY_INLINE Raw LoadLanes(const uint8_t* const* rows, size_t offset) {
  return Load16(rows[0] + offset);
}
HWY_INLINE Raw Shuffle(Raw v, __m128i order) { return _mm_shuffle_epi8(v, order); }
#endif

// kLanes rows at once, `out_stride` bytes apart; `count` of them are written. Reads up to
// kTapBytes bytes past the end of each.
void HorizontalRows3(const uint8_t* const* rows, const ResizeFilter& filter, int32_t count,
                     size_t out_stride, uint8_t* out) {
  const __m128i first_two = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m128i last_two =
      _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const Raw half = All(1 << (filter.precision - 1));
  const __m128i shift = _mm_cvtsi32_si128(filter.precision);
  const int16_t* weights = filter.weights.data();
  const size_t last = filter.taps.size() - 1;
  for (size_t x = 0; x <= last; ++x, weights += filter.stride) {
    const Taps taps = filter.taps[x];
    size_t offset = size_t(taps.first) * 3;
    Raw sum = half;
    for (int32_t j = 0; j < taps.count; j += 4, offset += 12) {
      const Raw four = LoadLanes(rows, offset);
      sum = Add(sum, MulPairs(Shuffle(four, first_two), All(WeightPair(weights + j))));
      sum = Add(sum, MulPairs(Shuffle(four, last_two), All(WeightPair(weights + j + 2))));
    }
    const Raw words = Pack32(Shift(sum, shift), half);
    alignas(64) uint8_t pixels[sizeof(Raw)];
    hn::Store(ByteVector{Pack16(words, words)}, Bytes(), pixels);
    // The fourth byte belongs to the next pixel, which is written next.
    const size_t size = x < last ? 4 : 3;
    for (int32_t i = 0; i < count; ++i) {
      uint8_t* target = out + size_t(i) * out_stride + 3 * x;
      if (size == 4) {
        std::memcpy(target, pixels + 16 * i, 4);
      } else {
        std::memcpy(target, pixels + 16 * i, 3);
      }
    }
  }
}

void Horizontal(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  const size_t row_bytes = filter.taps.size() * size_t(in.channels);
  if (in.channels != 3) {
    for (int32_t y = 0; y < in.height; ++y) {
      HorizontalRow(in.data + size_t(y) * in.stride, filter, in.channels, out);
      out += row_bytes;
    }
    return;
  }
  static thread_local std::vector<uint8_t> padded;
  const size_t in_bytes = size_t(in.width) * 3;
  const size_t reach = in_bytes + kTapBytes;
  padded.resize(kLanes * reach);
  for (int32_t y = 0; y < in.height; y += kLanes, out += kLanes * row_bytes) {
    const int32_t count = std::min(kLanes, in.height - y);
    const uint8_t* rows[kLanes];
    for (int32_t i = 0; i < kLanes; ++i) {
      const int32_t source = std::min(y + i, in.height - 1);
      rows[i] = in.data + size_t(source) * in.stride;
      // What lies behind the last rows may not be readable.
      if (size_t(in.height - 1 - source) * in.stride < kTapBytes) {
        uint8_t* copy = padded.data() + size_t(i) * reach;
        std::memcpy(copy, rows[i], in_bytes);
        rows[i] = copy;
      }
    }
    HorizontalRows3(rows, filter, count, row_bytes, out);
  }
}

void Vertical(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  const Bytes d;
  const size_t row_bytes = size_t(in.width) * size_t(in.channels);
  const size_t step = hn::Lanes(d);
  const __m128i shift = _mm_cvtsi32_si128(filter.precision);
  const Raw zero = All(0);
  for (size_t y = 0; y < filter.taps.size(); ++y, out += row_bytes) {
    const Taps taps = filter.taps[y];
    const int16_t* weights = &filter.weights[y * size_t(filter.stride)];
    const uint8_t* first = in.data + size_t(taps.first) * in.stride;
    if (row_bytes < step) {
      VerticalColumns(in, filter, y, out);
      continue;
    }
    for (size_t next = 0; next < row_bytes; next += step) {
      // The last vector overlaps the one before.
      const size_t x = std::min(next, row_bytes - step);
      Raw sums[4];
      std::fill_n(sums, 4, All(1 << (filter.precision - 1)));
      for (int32_t j = 0; j < taps.count; j += 2) {
        const uint8_t* row = first + size_t(j) * in.stride + x;
        const Raw a = hn::LoadU(d, row).raw;
        // With an odd number of taps the last weight is 0.
        const Raw b = j + 1 < taps.count ? hn::LoadU(d, row + in.stride).raw : zero;
        const Raw pair = All(WeightPair(weights + j));
        const Raw low = Low8(a, b), high = High8(a, b);
        sums[0] = Add(sums[0], MulPairs(Low8(low, zero), pair));
        sums[1] = Add(sums[1], MulPairs(High8(low, zero), pair));
        sums[2] = Add(sums[2], MulPairs(Low8(high, zero), pair));
        sums[3] = Add(sums[3], MulPairs(High8(high, zero), pair));
      }
      for (Raw& sum : sums) sum = Shift(sum, shift);
      const Raw bytes = Pack16(Pack32(sums[0], sums[1]), Pack32(sums[2], sums[3]));
      hn::StoreU(ByteVector{bytes}, d, out + x);
    }
  }
}

#else  // without byte shuffles

void Horizontal(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  for (int32_t y = 0; y < in.height; ++y) {
    HorizontalRow(in.data + size_t(y) * in.stride, filter, in.channels, out);
    out += filter.taps.size() * size_t(in.channels);
  }
}

void Vertical(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  const size_t row_bytes = size_t(in.width) * size_t(in.channels);
  for (size_t y = 0; y < filter.taps.size(); ++y, out += row_bytes) {
    VerticalColumns(in, filter, y, out);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace hetero::pipeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetero::pipeline {

HWY_EXPORT(Horizontal);
HWY_EXPORT(Vertical);

void ResizeHorizontally(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Horizontal)(in, filter, out);
}

void ResizeVertically(const PixelRows& in, const ResizeFilter& filter, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Vertical)(in, filter, out);
}

}  // namespace hetero::pipeline
#endif
