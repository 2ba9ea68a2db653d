#include "runtime/source/synthetic.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/source/counter_random.h"
#include "runtime/source/fingerprint.h"

namespace hetero::source {
namespace {

// base + brightness + contrast + noise stays below 256, so that no byte needs clamping:
// 112 + 15 + 64 + 63 = 254.
constexpr int kBaseMin = 16;
constexpr int kBaseSpan = 97;
constexpr int kContrastMin = 24;
constexpr int kContrastSpan = 41;
constexpr uint32_t kNoiseMask = 0x3f3f3f3f;
constexpr int32_t kMaxSide = 16384;
constexpr int32_t kMaxChannels = 64;

// Member `index` of the low-discrepancy sequence R3 (Roberts, 2018) along `axis`, in [0, span):
// consecutive classes get colours that are far apart.
int Spread(int32_t index, int axis, int span) {
  constexpr std::array<uint32_t, 3> kStep = {0xd1b54a32, 0xabc98388, 0x8cb92ba7};
  const uint32_t fraction = (static_cast<uint32_t>(index) + 1) * kStep[axis % 3];
  return static_cast<int>((static_cast<uint64_t>(fraction) * span) >> 32);
}

// What every byte of a row has in common, one entry per byte (width x channels).
struct RowPlan {
  std::vector<uint16_t> phase;
  std::vector<int16_t> base;
  std::vector<int16_t> contrast;
};

RowPlan PlanRow(int32_t label, const api::ImageShape& shape, int brightness, int waves) {
  const size_t row = static_cast<size_t>(shape.width) * shape.channels;
  RowPlan plan{std::vector<uint16_t>(row), std::vector<int16_t>(row), std::vector<int16_t>(row)};
  const uint32_t step = 65536u * waves / shape.width;
  size_t at = 0;
  for (int32_t x = 0; x < shape.width; ++x) {
    for (int32_t c = 0; c < shape.channels; ++c, ++at) {
      plan.phase[at] = static_cast<uint16_t>(x * step);
      plan.base[at] = static_cast<int16_t>(kBaseMin + Spread(label, c, kBaseSpan) + brightness);
      plan.contrast[at] =
          static_cast<int16_t>(kContrastMin + Spread(label / 16, c + 1, kContrastSpan));
    }
  }
  return plan;
}

// Writes one row: a triangle wave over the plan, plus noise. Plain loops over arrays of one length:
// the compiler vectorises them.
void DrawRow(const RowPlan& plan, uint16_t phase, const uint8_t* noise, size_t row, uint8_t* out) {
  const uint16_t* across = plan.phase.data();
  const int16_t* base = plan.base.data();
  const int16_t* contrast = plan.contrast.data();
  for (size_t i = 0; i < row; ++i) {
    const auto angle = static_cast<int16_t>(across[i] + phase);
    const auto wave = static_cast<int16_t>((angle ^ (angle >> 15)) >> 8);  // 0..127
    out[i] = static_cast<uint8_t>(base[i] + ((wave * contrast[i]) >> 7) + noise[i]);
  }
}

class Synthetic : public Dataset {
 public:
  Synthetic(int64_t samples, int32_t classes, api::ImageShape shape, job::Split split,
            uint64_t seed)
      : samples_(samples),
        classes_(classes),
        shape_(shape),
        split_(split == job::Split::kTrain ? 0 : 1),
        seed_(seed) {}

  int64_t size() const override { return samples_; }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return shape_; }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= samples_) {
      return absl::OutOfRangeError(absl::StrCat(Describe(id), ": ids end at ", samples_ - 1));
    }
    const size_t row = static_cast<size_t>(shape_.width) * shape_.channels;
    sample->encoding = Encoding::kRaw;
    sample->shape = shape_;
    sample->label = static_cast<int32_t>(id % classes_);
    sample->bytes.resize(row * shape_.height);
    Draw(PictureKey(seed_, split_, id), sample->label, row, sample->bytes.data());
    return absl::OkStatus();
  }

  std::string Describe(int64_t id) const override {
    return absl::StrCat("synthetic://: ", split_ == 0 ? "training" : "validation", " sample ", id);
  }

  std::string fingerprint() const override {
    Fingerprint print;
    print.Add("synthetic 1");
    print.Add(seed_);
    print.Add(split_);
    print.Add(static_cast<uint64_t>(samples_));
    for (const int32_t n : {classes_, shape_.height, shape_.width, shape_.channels}) {
      print.Add(static_cast<uint64_t>(n));
    }
    return print.ToHex();
  }

 private:
  void Draw(uint64_t key, int32_t label, size_t row, uint8_t* out) const {
    const int brightness = static_cast<int>(key & 15);
    const auto start = static_cast<uint16_t>(key >> 16);
    const RowPlan plan = PlanRow(label, shape_, brightness, label % 4);
    const uint32_t down = 65536u * ((label / 4) % 4) / shape_.height;
    const size_t words = (row + 3) / 4;
    std::vector<uint32_t> noise(words);
    auto counter = static_cast<uint32_t>(key >> 32);
    for (int32_t y = 0; y < shape_.height; ++y, counter += static_cast<uint32_t>(words)) {
      for (size_t i = 0; i < words; ++i) {
        noise[i] = Mix32(counter + static_cast<uint32_t>(i)) & kNoiseMask;
      }
      DrawRow(plan, static_cast<uint16_t>(start + y * down),
              reinterpret_cast<const uint8_t*>(noise.data()), row, out + y * row);
    }
  }

  int64_t samples_;
  int32_t classes_;
  api::ImageShape shape_;
  uint64_t split_;
  uint64_t seed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenSynthetic(const api::DatasetSource& source,
                                                       job::Split split, uint64_t seed) {
  for (const auto& [name, given] : {std::pair{"samples", source.samples.has_value()},
                                    std::pair{"classes", source.classes.has_value()},
                                    std::pair{"image", source.image.has_value()}}) {
    if (given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic://: dataset.", name,
                     " is missing; a synthetic dataset needs samples, classes ", "and image"));
  }
  const api::ImageShape& shape = *source.image;
  if (*source.samples <= 0 || *source.classes <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("synthetic://: samples ", *source.samples,
                                                   " and classes ", *source.classes,
                                                   " must be positive"));
  }
  if (shape.height <= 0 || shape.height > kMaxSide || shape.width <= 0 || shape.width > kMaxSide ||
      shape.channels <= 0 || shape.channels > kMaxChannels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "synthetic://: image [", shape.height, ", ", shape.width, ", ", shape.channels,
        "]: height and width go from 1 to ", kMaxSide, ", channels from 1 to ", kMaxChannels));
  }
  return std::make_unique<Synthetic>(*source.samples, *source.classes, shape, split, seed);
}

}  // namespace hetero::source
