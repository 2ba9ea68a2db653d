#include "runtime/source/synthetic_kernel.h"

#include <array>
#include <cstddef>

#include "runtime/source/counter_random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/source/synthetic_kernel.cpp"
#include "hwy/foreach_target.h"
// Must come after foreach_target.h.
#include "hwy/highway.h"

#ifndef HETERO_SOURCE_SYNTHETIC_ROW_PLAN
#define HETERO_SOURCE_SYNTHETIC_ROW_PLAN
namespace hetero::source {

inline constexpr uint32_t kNoiseMask = 0x3f3f3f3f;

// What every byte of a row has in common, one entry per byte (width x channels), and the row's
// noise.
struct RowPlan {
  std::vector<uint16_t> phase;
  std::vector<int16_t> base;
  std::vector<int16_t> contrast;
  std::vector<uint32_t> noise;  // four bytes an entry
};

}  // namespace hetero::source
#endif

HWY_BEFORE_NAMESPACE();
namespace hetero::source {
namespace HWY_NAMESPACE {

// Plain loops over arrays of one length: the compiler vectorises them for each target.
void DrawRows(const SyntheticPicture& picture, uint32_t down, RowPlan& plan, uint8_t* out) {
  const size_t row = plan.phase.size(), words = plan.noise.size();
  const uint16_t* HWY_RESTRICT across = plan.phase.data();
  const int16_t* HWY_RESTRICT base = plan.base.data();
  const int16_t* HWY_RESTRICT contrast = plan.contrast.data();
  uint32_t* HWY_RESTRICT noise = plan.noise.data();
  uint32_t counter = picture.noise_start;
  for (int32_t y = 0; y < picture.shape.height; ++y, counter += uint32_t(words), out += row) {
    for (size_t i = 0; i < words; ++i) noise[i] = Mix32(counter + uint32_t(i)) & kNoiseMask;
    const auto* HWY_RESTRICT grain = reinterpret_cast<const uint8_t*>(noise);
    const auto phase = uint16_t(picture.phase + uint32_t(y) * down);
    uint8_t* HWY_RESTRICT bytes = out;
    for (size_t i = 0; i < row; ++i) {
      const auto angle = int16_t(uint16_t(across[i] + phase));
      const auto wave = int16_t(int16_t(angle ^ (angle >> 15)) >> 8);  // 0..127
      bytes[i] = uint8_t(base[i] + (int16_t(wave * contrast[i]) >> 7) + grain[i]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hetero::source
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetero::source {
namespace {

// base + brightness + contrast + noise stays below 256, so that no byte needs clamping:
// 112 + 15 + 64 + 63 = 254.
constexpr int kBaseMin = 16;
constexpr int kBaseSpan = 97;
constexpr int kContrastMin = 24;
constexpr int kContrastSpan = 41;

// Member `index` of the low-discrepancy sequence R3 (Roberts, 2018) along `axis`, in [0, span):
// consecutive classes get colours that are far apart.
int Spread(int32_t index, int axis, int span) {
  constexpr std::array<uint32_t, 3> kStep = {0xd1b54a32, 0xabc98388, 0x8cb92ba7};
  const uint32_t fraction = (static_cast<uint32_t>(index) + 1) * kStep[axis % 3];
  return static_cast<int>((static_cast<uint64_t>(fraction) * span) >> 32);
}

void PlanRow(const SyntheticPicture& picture, RowPlan* plan) {
  const int32_t width = picture.shape.width, channels = picture.shape.channels;
  const size_t row = static_cast<size_t>(width) * channels;
  plan->phase.resize(row);
  plan->base.resize(row);
  plan->contrast.resize(row);
  plan->noise.resize((row + 3) / 4);
  const uint32_t step = 65536u * (picture.label % 4) / width;
  for (int32_t c = 0; c < channels; ++c) {
    const auto base =
        static_cast<int16_t>(kBaseMin + Spread(picture.label, c, kBaseSpan) + picture.brightness);
    const auto contrast =
        static_cast<int16_t>(kContrastMin + Spread(picture.label / 16, c + 1, kContrastSpan));
    uint32_t phase = 0;
    for (size_t at = c; at < row; at += channels, phase += step) {
      plan->phase[at] = static_cast<uint16_t>(phase);
      plan->base[at] = base;
      plan->contrast[at] = contrast;
    }
  }
}

}  // namespace

HWY_EXPORT(DrawRows);

void DrawSyntheticPicture(const SyntheticPicture& picture, uint8_t* out) {
  static thread_local RowPlan plan;
  PlanRow(picture, &plan);
  const uint32_t down = 65536u * ((picture.label / 4) % 4) / picture.shape.height;
  HWY_DYNAMIC_DISPATCH(DrawRows)(picture, down, plan, out);
}

}  // namespace hetero::source
#endif
