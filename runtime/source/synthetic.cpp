#include "runtime/source/synthetic.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/job/field_set.h"
#include "runtime/source/counter_random.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/synthetic_kernel.h"

namespace hetero::source {
namespace {

constexpr int32_t kMaxSide = 16384;
constexpr int32_t kMaxChannels = 64;

class Synthetic : public Dataset {
 public:
  Synthetic(int64_t samples, int32_t classes, api::ImageShape shape, job::Split split,
            uint64_t seed, const api::Label& label)
      : samples_(samples),
        classes_(classes),
        shape_(shape),
        split_(split == job::Split::kTrain ? 0 : 1),
        seed_(seed),
        label_(label),
        fields_(job::FieldsOf(label)) {}

  int64_t size() const override { return samples_; }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return shape_; }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= samples_) {
      return absl::OutOfRangeError(absl::StrCat(Describe(id), ": ids end at ", samples_ - 1));
    }
    sample->encoding = Encoding::kRaw;
    sample->shape = shape_;
    sample->label = static_cast<int32_t>(id % classes_);
    if (label_.numbers()) WriteNumbers(sample->label, &sample->fields);
    sample->bytes.resize(static_cast<size_t>(shape_.height) * shape_.width * shape_.channels);
    const uint64_t key = PictureKey(seed_, split_, id);
    DrawSyntheticPicture({.shape = shape_,
                          .label = sample->label,
                          .brightness = static_cast<int>(key & 15),
                          .phase = static_cast<uint16_t>(key >> 16),
                          .noise_start = static_cast<uint32_t>(key >> 32)},
                         sample->bytes.data());
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
    for (const job::FieldSpec& field : fields_.value_or(std::vector<job::FieldSpec>())) {
      print.Add(job::FieldHeading(field.name, job::NameOf(field.type), field.shape));
    }
    return print.ToHex();
  }

 private:
  void WriteNumbers(int32_t label, std::vector<uint8_t>* out) const {
    const job::FieldSpec& field = fields_->front();
    out->clear();
    for (int64_t j = 0; j < field.numbers(); ++j) {
      const int64_t bit = (label >> (j % 31)) & 1;
      if (label_.type == api::LabelType::kInt64) {
        Append(field.shape.empty() ? int64_t{label} : bit, out);
      } else {
        Append(field.shape.empty() ? static_cast<float>(label) / static_cast<float>(classes_)
                                   : static_cast<float>(bit),
               out);
      }
    }
  }
  template <typename T>
  static void Append(T number, std::vector<uint8_t>* out) {
    const size_t at = out->size();
    out->resize(at + sizeof number);
    std::memcpy(out->data() + at, &number, sizeof number);
  }

  int64_t samples_;
  int32_t classes_;
  api::ImageShape shape_;
  uint64_t split_;
  uint64_t seed_;
  api::Label label_;
  job::FieldSet fields_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenSynthetic(const api::DatasetSource& source,
                                                       job::Split split, uint64_t seed,
                                                       const api::Label& label) {
  for (const auto& [name, given] : {std::pair{"samples", source.samples.has_value()},
                                    std::pair{"classes", source.classes.has_value()},
                                    std::pair{"image", source.image.has_value()}}) {
    if (given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic://: dataset.", name,
                     " is missing; a synthetic dataset needs samples, classes ", "and image"));
  }
  if (!label.field.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic://: dataset.label.field ", label.field,
                     ": synthetic data has no fields of its ", "own; leave it out"));
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
  return std::make_unique<Synthetic>(*source.samples, *source.classes, shape, split, seed, label);
}

}  // namespace hetero::source
