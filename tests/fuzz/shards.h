#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/hetero_training_job.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"
#include "runtime/storage/store.h"
#include "tests/fuzz/fuzz.h"

// What the fuzz targets of the shard formats share: a dataset whose files are the input.
namespace hetero::fuzz {

// Objects in memory, which nothing changes.
class HeldObjects : public storage::Store {
 public:
  void Add(const std::string& name, std::span<const uint8_t> bytes) {
    objects_[name].assign(bytes.begin(), bytes.end());
  }

  const std::string& uri() const override { return uri_; }

  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override {
    std::vector<storage::Object> found;
    for (const auto& [name, bytes] : objects_) {
      if (name.starts_with(prefix)) found.push_back(Of(name, bytes));
    }
    return found;
  }

  absl::StatusOr<storage::Object> Head(std::string_view name) const override {
    const auto found = objects_.find(name);
    if (found != objects_.end()) return Of(found->first, found->second);
    return absl::NotFoundError(
        absl::StrCat(uri_, "/", absl::string_view(name.data(), name.size()), ": there is none"));
  }

  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    const std::vector<uint8_t>& bytes = objects_.find(object.name)->second;
    Require(offset >= 0 && static_cast<uint64_t>(offset) + out.size() <= bytes.size(),
            "a read beyond the object");
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return absl::OkStatus();
  }

 private:
  static storage::Object Of(const std::string& name, const std::vector<uint8_t>& bytes) {
    return {name, static_cast<int64_t>(bytes.size()), ""};
  }

  const std::string uri_ = "memory://dataset";
  std::map<std::string, std::vector<uint8_t>, std::less<>> objects_;
};

using OpenFormat = absl::StatusOr<std::unique_ptr<source::Dataset>> (*)(const source::ShardSource&,
                                                                        const api::DatasetSource&,
                                                                        job::Split,
                                                                        const api::Label&);

// Labels of every kind, and classes that the manifest declares or leaves to be counted.
inline api::Label LabelOf(uint8_t choice) {
  api::Label label;
  label.type = static_cast<api::LabelType>(choice & 3);
  if (label.numbers() && (choice & 4) != 0) label.shape = {2};
  return label;
}

inline void CheckSample(const source::Dataset& dataset, int64_t id, const api::Label& label) {
  source::RawSample sample;
  const absl::Status status = dataset.Read(id, &sample);
  Require(status.ok() || absl::IsDataLoss(status), "a sample that storage failed on");
  if (!status.ok()) {
    Require(absl::StrContains(status.message(), "memory://dataset/"), "a sample without a place");
    return;
  }
  Require(sample.encoding != source::Encoding::kRaw, "a picture of no encoding");
  if (label.type == api::LabelType::kClass) {
    Require(sample.label >= 0 && sample.label < dataset.classes(), "a label without a class");
  }
  const size_t number = label.type == api::LabelType::kInt64 ? 8 : 4;
  const size_t fields = label.numbers() ? number * (label.shape.empty() ? 1 : 2) : 0;
  Require(sample.fields.size() == fields, "numbers of another size than declared");
}

// Opens what is in `store` and reads its first samples. What is refused is refused with its place.
inline void CheckShards(OpenFormat open, std::shared_ptr<const HeldObjects> store, uint8_t choice,
                        const api::SampleFields& fields) {
  Silence();
  api::DatasetSource source;
  source.uri = store->uri();
  source.fields = fields;
  if ((choice & 8) != 0) source.classes = 10;
  const api::Label label = LabelOf(choice);
  const auto dataset = open({std::move(store), {}}, source, job::Split::kTrain, label);
  if (!dataset.ok()) {
    Require(absl::IsDataLoss(dataset.status()) || absl::IsInvalidArgument(dataset.status()) ||
                absl::IsNotFound(dataset.status()),
            "a dataset that is refused as something else");
    Require(absl::StrContains(dataset.status().message(), "memory://dataset"),
            "an error that does not name the dataset");
    return;
  }
  for (int64_t id = 0; id < std::min<int64_t>((*dataset)->size(), 16); ++id) {
    CheckSample(**dataset, id, label);
  }
  source::RawSample sample;
  Require(absl::IsOutOfRange((*dataset)->Read((*dataset)->size(), &sample)), "one sample too many");
}

}  // namespace hetero::fuzz
