#include "runtime/source/sharded_dataset.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
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

struct Wanted {
  int64_t id = 0;
  size_t place = 0;  // in what is asked for
  SampleLocation location;

  int64_t end() const { return location.offset + location.length; }
};

// Bytes of a shard that one request reads.
class RunOfBytes {
 public:
  explicit RunOfBytes(const Wanted& first) : last_(first), begin_(first.location.offset) {
    wanted_ = first.location.length;
  }

  int64_t size() const { return last_.end() - begin_; }
  // Whether the sample, which begins behind where the last one does, is better read by the same
  // request; then it is.
  bool Add(const Wanted& next) {
    const int64_t between = next.location.offset - last_.end();
    if (next.location.shard != last_.location.shard || between < 0 ||
        next.end() - begin_ > ShardedDataset::kMostRunBytes) {
      return false;
    }
    const bool neighbours = next.id == last_.id + 1 && between <= kMostHeads;
    const int64_t wanted = wanted_ + next.location.length;
    if (!neighbours && wasted_ + between > wanted / kWastedShare) return false;
    if (!neighbours) wasted_ += between;
    wanted_ = wanted;
    last_ = next;
    return true;
  }

 private:
  static constexpr int64_t kMostHeads =
      4096;  // bytes between neighbours: less than a request costs
  static constexpr int64_t kWastedShare = 16;

  Wanted last_;
  int64_t begin_ = 0;
  int64_t wanted_ = 0;
  int64_t wasted_ = 0;
};

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

std::string ShardedDataset::versions() const {
  // Also of those that are read unpacked, which are not remote.
  if (absl::StartsWith(contents_.store->uri(), "file://")) return "";
  Fingerprint print;
  for (const storage::Object& shard : contents_.shards) print.Add(shard);
  return print.ToHex();
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
  HETERO_RETURN_IF_ERROR(ReadBytes(location, location.offset, absl::MakeSpan(sample->bytes)));
  return Finish(id, location, sample);
}

// What is left to do with a sample whose bytes were read.
absl::Status ShardedDataset::Finish(int64_t id, const SampleLocation& location,
                                    RawSample* sample) const {
  sample->shape = {};
  sample->fields.clear();
  sample->mask.clear();
  sample->label = labels_are_classes() ? location.label : 0;
  absl::Status status = Unpack(location, sample);
  if (status.ok() && labels_are_classes()) status = CheckLabel(sample->label, classes_);
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(Describe(id), ": ", status.message()));
}

std::vector<Dataset::Run> ShardedDataset::RunsOf(const std::vector<int64_t>& ids) const {
  if (!is_remote()) return Dataset::RunsOf(ids);
  std::vector<Wanted> wanted;
  std::vector<std::pair<size_t, Run>> runs;  // by the place of the first one
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_there = ids[i] >= 0 && ids[i] < size();
    const absl::StatusOr<SampleLocation> location =
        is_there ? LocationOf(ids[i]) : absl::OutOfRangeError("");
    if (location.ok() && location->length <= kMaxPictureBytes && !LiesApart(*location)) {
      wanted.push_back({ids[i], i, *location});
    } else {
      runs.push_back({i, {.ids = {ids[i]}}});  // where it is none, Read() says so
    }
  }
  std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
    return std::pair(a.location.shard, a.location.offset) <
           std::pair(b.location.shard, b.location.offset);
  });
  std::optional<RunOfBytes> bytes;
  for (const Wanted& sample : wanted) {
    if (bytes && bytes->Add(sample)) {
      runs.back().first = std::min(runs.back().first, sample.place);
      runs.back().second.ids.push_back(sample.id);
    } else {
      bytes.emplace(sample);
      runs.push_back({sample.place, {.ids = {sample.id}}});
    }
    runs.back().second.bytes = bytes->size();
  }
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Run> ordered;
  ordered.reserve(runs.size());
  for (auto& run : runs) ordered.push_back(std::move(run.second));
  return ordered;
}

std::vector<absl::Status> ShardedDataset::ReadRun(absl::Span<const int64_t> ids,
                                                  absl::Span<RawSample> samples) const {
  if (ids.size() < 2) return Dataset::ReadRun(ids, samples);
  std::vector<SampleLocation> locations;
  for (const int64_t id : ids) {
    const absl::StatusOr<SampleLocation> location = LocationOf(id);
    if (!location.ok()) return Dataset::ReadRun(ids, samples);
    locations.push_back(*location);
  }
  const int64_t first = locations.front().offset;
  std::vector<uint8_t> bytes(
      static_cast<size_t>(locations.back().offset + locations.back().length - first));
  const absl::Status read = ReadBytes(locations.front(), first, absl::MakeSpan(bytes));
  std::vector<absl::Status> statuses(ids.size(), read);
  if (!read.ok()) return statuses;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(locations[i].offset - first);
    samples[i].bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(locations[i].length));
    statuses[i] = Finish(ids[i], locations[i], &samples[i]);
  }
  return statuses;
}

absl::Status CheckLabel(int64_t label, int32_t classes) {
  if (label >= 0 && label < classes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("label ", label, " is not in [0, ", classes,
                   "); dataset.classes says how many there are, and dataset.fields.label.offset "
                   "is added to each"));
}

}  // namespace hetero::source
