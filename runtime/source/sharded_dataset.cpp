#include "runtime/source/sharded_dataset.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/source/declared.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/picture_encoding.h"

namespace hetero::source {
namespace {

// Of the data, not of where it lies: names relative to the root, and no times or ETags, which
// differ from copy to copy.
std::string FingerprintOf(std::string_view format, const ShardedDataset::Contents& contents) {
  Fingerprint print;
  print.Add(format);
  print.Add(contents.rule);
  for (const storage::Object& shard : contents.shards) {
    print.Add(shard.name);
    print.Add(static_cast<uint64_t>(shard.size));
  }
  print.Add(static_cast<uint64_t>(contents.samples.size()));
  return print.ToHex();
}

}  // namespace

absl::Status ShardedDataset::Fill(std::string_view format, Contents contents,
                                  const api::DatasetSource& declared, int32_t classes) {
  const std::string& uri = contents.store->uri();
  contents_ = std::move(contents);
  if (contents_.samples.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(uri, ": the ", contents_.shards.size(),
                                                   " files of this dataset hold no samples"));
  }
  HETERO_RETURN_IF_ERROR(CheckSamples(uri, declared, size()));
  classes_ = classes;
  if (classes == 0) {
    classes_ = declared.classes.value_or(0);
  } else if (classes != kCountClasses) {
    HETERO_RETURN_IF_ERROR(CheckClasses(uri, declared, classes));
  } else if (declared.classes) {
    classes_ = *declared.classes;
  } else {
    const int32_t highest = contents_.samples.highest_label();
    if (highest < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          uri, ": no sample has a label; say how many classes there are in dataset.classes"));
    }
    classes_ = highest + 1;
  }
  image_ = declared.image.value_or(api::ImageShape{});
  fingerprint_ = FingerprintOf(format, contents_);
  log::Info("shards opened", {{"format", std::string(format)},
                              {"uri", uri},
                              {"shards", static_cast<int64_t>(contents_.shards.size())},
                              {"samples", size()},
                              {"classes", classes_}});
  return absl::OkStatus();
}

std::string ShardedDataset::places() const {
  return absl::StrCat(absl::Hex(contents_.samples.checksum(), absl::kZeroPad8));
}

absl::StatusOr<SampleLocation> ShardedDataset::LocationOf(int64_t id) const {
  HETERO_ASSIGN_OR_RETURN(const SampleLocation location, contents_.samples.At(id));
  if (location.shard < contents_.shards.size()) return location;
  return absl::FailedPreconditionError(
      absl::StrCat(contents_.store->uri(), ": sample ", id,
                   " lies in none of the shards; make its index again"));
}

std::string ShardedDataset::ShardOf(int64_t id) const {
  const absl::StatusOr<SampleLocation> location = LocationOf(id);
  if (!location.ok()) return contents_.store->uri();
  return absl::StrCat(contents_.store->uri(), "/", contents_.shards[location->shard].name);
}

std::string ShardedDataset::Describe(int64_t id) const {
  const absl::StatusOr<SampleLocation> location =
      id < 0 || id >= size() ? absl::OutOfRangeError("") : LocationOf(id);
  if (!location.ok()) return absl::StrCat(contents_.store->uri(), ": sample ", id);
  return absl::StrCat(ShardOf(id), ": byte ", location->offset);
}

absl::Status ShardedDataset::ReadBytes(const SampleLocation& location, int64_t offset,
                                       absl::Span<uint8_t> out) const {
  return contents_.store->Read(contents_.shards[location.shard], offset, out);
}

absl::Status ShardedDataset::Read(int64_t id, RawSample* sample) const {
  if (id < 0 || id >= size()) {
    return absl::OutOfRangeError(absl::StrCat(Describe(id), ": ids end at ", size() - 1));
  }
  HETERO_ASSIGN_OR_RETURN(const SampleLocation location, LocationOf(id));
  if (location.length > kMaxPictureBytes) {
    return absl::DataLossError(absl::StrCat(Describe(id), ": ", location.length,
                                            " bytes; samples of more than ", kMaxPictureBytes,
                                            " bytes are not read"));
  }
  sample->bytes.resize(location.length);
  sample->shape = {};
  sample->fields.clear();
  sample->label = labels_are_classes() ? location.label : 0;
  HETERO_RETURN_IF_ERROR(ReadBytes(location, location.offset, absl::MakeSpan(sample->bytes)));
  absl::Status status = Unpack(location, sample);
  if (status.ok() && labels_are_classes()) status = CheckLabel(sample->label, classes_);
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(Describe(id), ": ", status.message()));
}

absl::Status CheckLabel(int64_t label, int32_t classes) {
  if (label >= 0 && label < classes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("label ", label, " is not in [0, ", classes,
                   "); dataset.classes says how many there are, and dataset.fields.label.offset "
                   "is added to each"));
}

}  // namespace hetero::source
