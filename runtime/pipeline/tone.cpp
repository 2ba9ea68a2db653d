#include "runtime/pipeline/tone.h"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/pipeline/exact_math.h"

namespace hetero::pipeline {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

Histogram HistogramOf(const Image& image, size_t channel) {
  Histogram counts{};
  const size_t channels = size_t(image.shape.channels);
  for (size_t i = channel; i < image.bytes.size(); i += channels) ++counts[image.bytes[i]];
  return counts;
}

// Replaces the values of each channel by the table that `make_table` computes from its histogram.
template <class MakeTable>
void MapChannels(MakeTable make_table, Image* image) {
  const size_t channels = size_t(image->shape.channels);
  for (size_t c = 0; c < channels; ++c) {
    const Table table = make_table(HistogramOf(*image, c));
    for (size_t i = c; i < image->bytes.size(); i += channels) {
      image->bytes[i] = table[image->bytes[i]];
    }
  }
}

Table Unchanged() {
  Table table;
  for (size_t v = 0; v < table.size(); ++v) table[v] = uint8_t(v);
  return table;
}

// In float32 as torchvision, so that whole quotients are truncated alike.
Table StretchTable(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[size_t(low)] == 0) ++low;
  while (high > 0 && counts[size_t(high)] == 0) --high;
  if (low >= high) return Unchanged();
  const float scale = float(high - low) * float(1.0 / 255);
  Table table{};
  for (int v = low; v <= high; ++v) {
    table[size_t(v)] = uint8_t(std::clamp(float(v - low) / scale, 0.0f, 255.0f));
  }
  return table;
}

Table EqualizeTable(const Histogram& counts) {
  int64_t pixels = 0, brightest = 0;
  for (const int64_t count : counts) {
    pixels += count;
    if (count > 0) brightest = count;
  }
  const int64_t step = (pixels - brightest) / 255;
  if (step == 0) return Unchanged();
  Table table{};
  int64_t below = 0;
  for (size_t v = 1; v < table.size(); ++v) {
    below += counts[v - 1];
    table[v] = uint8_t(std::min<int64_t>((below + step / 2) / step, 255));
  }
  return table;
}

}  // namespace

void AutoContrast(Image* image) { MapChannels(StretchTable, image); }

void Equalize(Image* image) { MapChannels(EqualizeTable, image); }

void Posterize(int32_t bits, Image* image) {
  const uint8_t mask = uint8_t(0xff00 >> bits);
  for (uint8_t& v : image->bytes) v &= mask;
}

void Solarize(int32_t threshold, Image* image) {
  for (uint8_t& v : image->bytes) v = v >= threshold ? uint8_t(~v) : v;
}

void Invert(Image* image) {
  for (uint8_t& v : image->bytes) v = uint8_t(~v);
}

void AdjustSharpness(double factor, Image* image) {
  const auto [height, width, channels] = image->shape;
  if (height <= 2 || width <= 2) return;
  constexpr int32_t kOne = 1 << 16;
  const int32_t blend = int32_t(RoundHalfEven((1 - factor) * kOne));
  // `blend` is off by half a unit at most, a product by 128: a whole number is not truncated to the
  // level below.
  constexpr int32_t kGuard = 128;
  static thread_local std::vector<uint8_t> above, own;
  const size_t size = image->row_bytes();
  const size_t step = size_t(channels);
  above.assign(image->row(0), image->row(0) + size);
  for (int32_t y = 1; y < height - 1; ++y) {
    uint8_t* row = image->row(y);
    const uint8_t* below = image->row(y + 1);
    own.assign(row, row + size);
    for (size_t i = step; i < size - step; ++i) {
      const auto three = [i, step](const uint8_t* p) { return p[i - step] + p[i] + p[i + step]; };
      const int32_t sum = three(above.data()) + three(own.data()) + three(below) + 4 * own[i];
      const int32_t smooth = (sum + 6) / 13;
      const int32_t value = (own[i] * kOne + blend * (smooth - own[i]) + kGuard) >> 16;
      row[i] = uint8_t(std::clamp(value, 0, 255));
    }
    std::swap(above, own);
  }
}

}  // namespace hetero::pipeline
