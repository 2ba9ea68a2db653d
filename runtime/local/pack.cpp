#include "runtime/local/pack.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "api/enums.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/local/pack_record.h"
#include "runtime/local/pack_sample.h"
#include "runtime/local/pack_shard.h"
#include "runtime/source/dataset.h"
#include "runtime/source/in_parallel.h"
#include "runtime/source/sample_finder.h"
#include "runtime/storage/stores.h"

namespace hetero::local {
namespace {

constexpr char kFile[] = "file://";

using Clock = std::chrono::steady_clock;

constexpr int64_t kReadAtOnce = 32;  // samples
constexpr size_t kReadBack = size_t{1} << 20;
constexpr int64_t kMostRecordBytes = int64_t{256} << 20;
constexpr auto kBetweenRecords = std::chrono::seconds(1);
constexpr auto kBetweenProgress = std::chrono::milliseconds(250);

absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool Has(const std::vector<storage::Object>& objects, const storage::Object& wanted) {
  return std::find(objects.begin(), objects.end(), wanted) != objects.end();
}

// Empty: there is none.
std::optional<storage::Object> Find(const std::vector<storage::Object>& objects,
                                    const std::string& name) {
  const auto found =
      std::find_if(objects.begin(), objects.end(),
                   [&name](const storage::Object& object) { return object.name == name; });
  return found == objects.end() ? std::nullopt : std::optional(*found);
}

// Whether `destination` is the dataset's own place or lies in it, where a job would read the shards
// beside what they were made of.
bool LiesIn(const std::string& destination, const std::string& source) {
  const auto plain = [](std::string uri) {
    if (absl::StartsWith(uri, kFile)) {
      std::error_code ignored;
      uri =
          kFile + std::filesystem::weakly_canonical(uri.substr(sizeof kFile - 1), ignored).string();
    }
    while (absl::EndsWith(uri, "/")) uri.pop_back();
    return uri + "/";
  };
  return absl::StartsWith(plain(destination), plain(source));
}

class Packer {
 public:
  Packer(const PackOptions& options, const source::Dataset& dataset,
         storage::WritableStore& destination)
      : options_(options),
        dataset_(dataset),
        destination_(destination),
        format_(PackFormatOf(options)) {}

  absl::StatusOr<PackProgress> Pack() {
    HETERO_RETURN_IF_ERROR(GoOn());
    absl::Status status = PackRest();
    shard_.reset();  // what is not whole leaves room for the record
    // What is whole stays, however this ended.
    status.Update(WriteRecord());
    HETERO_RETURN_IF_ERROR(status);
    HETERO_RETURN_IF_ERROR(CheckWhole());
    // Last, so that what is not whole is no dataset.
    HETERO_RETURN_IF_ERROR(WriteIndex());
    return progress_;
  }

 private:
  // What decides the bytes of all shards.
  std::string Source() const {
    const api::Label& label = options_.label;
    std::string source =
        absl::StrCat(dataset_.fingerprint(), " ", dataset_.size(), " ",
                     std::string(api::NameOf(options_.format)), " ", options_.shard_bytes, " ",
                     std::string(api::NameOf(label.type)));
    if (!label.shape.empty()) absl::StrAppend(&source, " ", absl::StrJoin(label.shape, ","));
    return source;
  }
  absl::Status HoldsOther(const std::string& what) const {
    return absl::FailedPreconditionError(
        absl::StrCat(destination_.uri(), ": ", what, "; choose another destination, or empty it"));
  }

  absl::Status Stopped() const {
    return absl::CancelledError(absl::StrCat(destination_.uri(), ": stopped after ",
                                             progress_.samples, " of ", dataset_.size(),
                                             " samples; the same command goes on"));
  }

  // Finds what is there already.
  absl::Status GoOn() {
    record_.source = Source();
    HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects, destination_.List(""));
    if (objects.empty()) return Begin();
    const std::optional<storage::Object> record = Find(objects, kPackRecord);
    if (!record) return HoldsOther(absl::StrCat("holds ", objects.front().name));
    if (record->size > kMostRecordBytes) return HoldsOther("its _pack.json is too large");
    HETERO_ASSIGN_OR_RETURN(const std::string text, TextOf(*record));
    absl::StatusOr<PackRecord> there = ReadPackRecord(text);
    if (!there.ok()) return HoldsOther(absl::StrCat("its _pack.json ", there.status().message()));
    if (there->source != record_.source) {
      return HoldsOther(
          "holds shards of another dataset, with other labels, in another --format, or of another "
          "--shard-size");
    }
    for (const storage::Object& object : objects) {
      if (object.name != kPackRecord && object.name != format_->index_name() &&
          !format_->IsShard(object.name)) {
        return HoldsOther(absl::StrCat("holds ", object.name));
      }
    }
    const std::optional<storage::Object> index = Find(objects, format_->index_name());
    if (index) HETERO_RETURN_IF_ERROR(CheckIndex(*index, there->shards));
    for (PackedShard& shard : there->shards) {
      if (shard.name != format_->ShardName(record_.shards.size()) || shard.samples < 1 ||
          shard.samples > dataset_.size() - progress_.samples) {
        return HoldsOther(absl::StrCat("its _pack.json is wrong about ", shard.name));
      }
      if (!Has(objects, {shard.name, shard.bytes, shard.version})) break;
      whole_bytes_ += shard.bytes;
      progress_.samples += shard.samples;
      record_.shards.push_back(std::move(shard));
    }
    progress_.shards = static_cast<int64_t>(record_.shards.size());
    progress_.bytes = whole_bytes_;
    progress_.kept = progress_.samples;
    has_index_ = index.has_value() && progress_.samples == dataset_.size();
    // It says that shards are there which no longer are.
    if (index && !has_index_) return destination_.Delete(index->name);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> TextOf(const storage::Object& object) const {
    std::string text(static_cast<size_t>(object.size), '\0');
    HETERO_RETURN_IF_ERROR(
        destination_.Read(object, 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
    return text;
  }

  // That `there` is what this wrote behind the last one of `shards`.
  absl::Status CheckIndex(const storage::Object& there,
                          const std::vector<PackedShard>& shards) const {
    const std::string wanted = format_->Index(shards);
    if (there.size == static_cast<int64_t>(wanted.size())) {
      HETERO_ASSIGN_OR_RETURN(const std::string text, TextOf(there));
      if (text == wanted) return absl::OkStatus();
    }
    return HoldsOther(absl::StrCat("its ", there.name, " is not that of its shards"));
  }

  // Says whose shards these are, before there is any, to others who begin at the same time.
  absl::Status Begin() {
    const absl::Status begun = destination_.WriteIfAbsent(kPackRecord, ToJson(record_)).status();
    if (!absl::IsAlreadyExists(begun)) return begun;
    return HoldsOther("somebody else has begun to pack into it just now");
  }

  // Nothing else may have been written to the destination meanwhile: a job reads all that is there.
  absl::Status CheckWhole() const {
    HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects, destination_.List(""));
    std::set<std::string> names;
    for (const storage::Object& object : objects) names.insert(object.name);
    for (const PackedShard& shard : record_.shards) {
      if (!Has(objects, {shard.name, shard.bytes, shard.version})) {
        return HoldsOther(absl::StrCat(shard.name, " was changed while this packed"));
      }
      names.erase(shard.name);
    }
    names.erase(kPackRecord);
    if (has_index_) names.erase(format_->index_name());
    if (names.empty()) return absl::OkStatus();
    return HoldsOther(absl::StrCat("holds ", *names.begin(), ", which this has not packed"));
  }

  absl::Status PackRest() {
    while (progress_.samples < dataset_.size()) {
      const int64_t first = progress_.samples;
      const int64_t count = std::min(kReadAtOnce, dataset_.size() - first);
      HETERO_RETURN_IF_ERROR(source::InParallel(static_cast<size_t>(count), [&](size_t i) {
        return Read(first + static_cast<int64_t>(i), &samples_[i]);
      }));
      for (int64_t i = 0; i < count; ++i) {
        if (options_.stop.stop_requested()) {
          return Stopped();
        }
        HETERO_RETURN_IF_ERROR(Add(first + i, samples_[static_cast<size_t>(i)]));
      }
    }
    HETERO_RETURN_IF_ERROR(CloseShard());
    Tell(/*now=*/true);
    return absl::OkStatus();
  }

  absl::Status Read(int64_t id, source::RawSample* sample) const {
    if (options_.stop.stop_requested()) return absl::OkStatus();  // PackRest() says so
    HETERO_RETURN_IF_ERROR(dataset_.Read(id, sample));
    const absl::Status status = MakePackable(options_.label, sample);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(dataset_.Describe(id), ": ", status.message()));
  }

  absl::Status Add(int64_t id, const source::RawSample& sample) {
    const int64_t size = format_->BytesOf(sample);
    if (shard_ != nullptr && shard_->bytes() + size > options_.shard_bytes) {
      HETERO_RETURN_IF_ERROR(CloseShard());
    }
    if (shard_ == nullptr) HETERO_RETURN_IF_ERROR(BeginShard());
    if (shard_->bytes() + size > format_->most_shard_bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          dataset_.Describe(id), ": takes ", size, " bytes, and a shard of ",
          std::string(api::NameOf(options_.format)), " has ", format_->most_shard_bytes(),
          " at most; take the sample out, or pack with --format WebDataset"));
    }
    HETERO_RETURN_IF_ERROR(shard_->Add(id, sample));
    ++progress_.samples;
    progress_.bytes = whole_bytes_ + shard_->bytes();
    Tell(/*now=*/false);
    return absl::OkStatus();
  }

  absl::Status BeginShard() {
    if (record_.shards.size() == format_->most_shards()) {
      return absl::InvalidArgumentError(
          absl::StrCat(destination_.uri(), ": has ", format_->most_shards(),
                       " shards already; give a larger --shard-size and another destination"));
    }
    std::string name = format_->ShardName(record_.shards.size());
    HETERO_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> writer,
                            destination_.Create(name));
    shard_ = format_->Begin(std::move(name), std::move(writer));
    return absl::OkStatus();
  }

  absl::Status CloseShard() {
    if (shard_ == nullptr) return absl::OkStatus();
    auto written = shard_->Close(options_.stop);
    shard_.reset();
    if (absl::IsCancelled(written.status())) return Stopped();
    HETERO_RETURN_IF_ERROR(written.status());
    auto& [shard, object] = *written;
    if (options_.verify) HETERO_RETURN_IF_ERROR(Verify(shard, object));
    whole_bytes_ += shard.bytes;
    record_.shards.push_back(std::move(shard));
    ++progress_.shards;
    if (Clock::now() - recorded_ < kBetweenRecords) return absl::OkStatus();
    return WriteRecord();
  }

  absl::Status WriteIndex() {
    const std::string name = format_->index_name();
    if (name.empty() || has_index_) return absl::OkStatus();
    const std::string text = format_->Index(record_.shards);
    HETERO_ASSIGN_OR_RETURN(const storage::Object object, Write(name, text));
    if (!options_.verify) return absl::OkStatus();
    return Verify({.name = name,
                   .bytes = static_cast<int64_t>(text.size()),
                   .crc = base::Crc32c(BytesOf(text).data(), text.size())},
                  object);
  }

  absl::Status Verify(const PackedShard& shard, const storage::Object& object) const {
    std::vector<uint8_t> block(kReadBack);
    uint32_t crc = 0;
    for (int64_t at = 0; at < object.size; at += static_cast<int64_t>(kReadBack)) {
      if (options_.stop.stop_requested()) return Stopped();
      const auto size = std::min(kReadBack, static_cast<size_t>(object.size - at));
      HETERO_RETURN_IF_ERROR(destination_.Read(object, at, {block.data(), size}));
      crc = base::Crc32c(block.data(), size, crc);
    }
    if (object.size == shard.bytes && crc == shard.crc) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(destination_.uri(), "/", shard.name,
                     ": what is read there is not what was written; does something else write to "
                     "it?"));
  }

  absl::Status WriteRecord() {
    HETERO_RETURN_IF_ERROR(Write(kPackRecord, ToJson(record_)).status());
    recorded_ = Clock::now();
    return absl::OkStatus();
  }

  absl::StatusOr<storage::Object> Write(const std::string& name, std::string_view text) {
    HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                            destination_.Create(name));
    HETERO_RETURN_IF_ERROR(writer->Append(BytesOf(text)));
    return writer->Close();
  }

  void Tell(bool now) {
    if (options_.on_progress == nullptr) return;
    if (!now && Clock::now() - told_ < kBetweenProgress) return;
    told_ = Clock::now();
    options_.on_progress(progress_, dataset_.size());
  }

  const PackOptions& options_;
  const source::Dataset& dataset_;
  storage::WritableStore& destination_;
  const std::unique_ptr<const PackFormat> format_;
  PackRecord record_;
  PackProgress progress_;
  int64_t whole_bytes_ = 0;  // of shards in the record
  bool has_index_ = false;   // that of all shards was there already
  std::unique_ptr<PackShard> shard_;
  std::vector<source::RawSample> samples_ = std::vector<source::RawSample>(kReadAtOnce);
  Clock::time_point recorded_;
  Clock::time_point told_;
};

}  // namespace

absl::StatusOr<Packed> PackDataset(const PackOptions& options) {
  HETERO_RETURN_IF_ERROR(CheckPackOptions(options));
  if (LiesIn(options.destination, options.source.uri)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.destination, ": lies in the dataset, ", options.source.uri,
                     ", and would become a part of it; choose another destination"));
  }
  HETERO_ASSIGN_OR_RETURN(
      const std::unique_ptr<source::Dataset> dataset,
      source::OpenDataset(options.source, job::Split::kTrain, /*seed=*/0, options.label,
                          options.storage, source::ScanningFinder()));
  absl::string_view folder = options.destination;
  if (absl::ConsumePrefix(&folder, kFile)) {
    std::error_code error;
    std::filesystem::create_directories(std::string(folder), error);
    if (error) {
      return absl::ErrnoToStatus(error.value(),
                                 absl::StrCat(options.destination, ": cannot make this folder"));
    }
  }
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> destination,
                          storage::Stores(options.storage).OpenWritable(options.destination));
  Packed packed;
  HETERO_ASSIGN_OR_RETURN(packed.progress, Packer(options, *dataset, *destination).Pack());
  packed.source.uri = options.destination;
  packed.source.format = options.format;
  packed.source.samples = dataset->size();
  if (dataset->classes() > 0) packed.source.classes = dataset->classes();
  if (dataset->image().height > 0) packed.source.image = dataset->image();
  for (int32_t label = 0; label < dataset->classes(); ++label) {
    std::string name = dataset->ClassName(label);
    if (name == std::to_string(label)) break;
    packed.class_names.push_back(std::move(name));
  }
  packed.label = {options.label.type, options.label.shape};
  // In MDS they are found without being named.
  if (options.label.numbers() && options.format == api::DatasetFormat::kWebDataset) {
    packed.source.fields.label.field = "json";
  }
  return packed;
}

}  // namespace hetero::local
