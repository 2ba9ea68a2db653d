#include "runtime/local/pack.h"

#include <png.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "api/enums.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/insight/figures.h"
#include "runtime/local/pack_record.h"
#include "runtime/source/dataset.h"
#include "runtime/source/in_parallel.h"
#include "runtime/source/tar_writer.h"
#include "runtime/storage/open_store.h"

namespace hetero::local {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kReadAtOnce = 32;  // samples
constexpr size_t kReadBack = size_t{1} << 20;
constexpr int64_t kMostRecordBytes = int64_t{256} << 20;
constexpr auto kBetweenRecords = std::chrono::seconds(5);
constexpr auto kBetweenProgress = std::chrono::milliseconds(250);

absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Pixels as a PNG, which gives them back as they are.
absl::Status EncodePng(const api::ImageShape& shape, std::vector<uint8_t>* bytes) {
  if (shape.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", shape.channels, " channel, and pictures in files are read with three; keep this ",
        "dataset as it is"));
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(shape.width);
  header.height = static_cast<png_uint_32>(shape.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> encoded(size);
  if (png_image_write_to_memory(&header, encoded.data(), &size, 0, bytes->data(), 0, nullptr) ==
      0) {
    return absl::InternalError(absl::StrCat("cannot be encoded: ", header.message));
  }
  encoded.resize(size);
  *bytes = std::move(encoded);
  return absl::OkStatus();
}

template <typename Number>
nlohmann::json Nested(const std::vector<int32_t>& shape, size_t depth, const uint8_t** bytes) {
  if (depth == shape.size()) {
    Number number;
    std::memcpy(&number, *bytes, sizeof number);
    *bytes += sizeof number;
    return number;
  }
  nlohmann::json list = nlohmann::json::array();
  for (int32_t i = 0; i < shape[depth]; ++i)
    list.push_back(Nested<Number>(shape, depth + 1, bytes));
  return list;
}

// The label's member: what follows its name, and what is in it. Empty: there is none.
std::pair<std::string, std::string> LabelMember(const source::RawSample& sample,
                                                const api::Label& label) {
  const uint8_t* bytes = sample.fields.data();
  switch (label.type) {
    case api::LabelType::kClass:
      return {"cls", absl::StrCat(sample.label)};
    case api::LabelType::kInt64:
      return {"json", Nested<int64_t>(label.shape, 0, &bytes).dump()};
    case api::LabelType::kFloat32:
      return {"json", Nested<float>(label.shape, 0, &bytes).dump()};
    case api::LabelType::kNone:
      return {};
  }
  __builtin_unreachable();
}

// One archive on its way.
class Shard {
 public:
  Shard(std::string name, std::unique_ptr<storage::ObjectWriter> writer)
      : writer_(std::move(writer)) {
    shard_.name = std::move(name);
  }

  int64_t bytes() const { return shard_.bytes; }
  int64_t samples() const { return shard_.samples; }

  absl::Status Add(int64_t id, const source::RawSample& sample, const api::Label& label) {
    const std::string key = absl::StrFormat("%09d.", id);
    const char* extension = sample.encoding == source::Encoding::kJpeg ? "jpg" : "png";
    HETERO_RETURN_IF_ERROR(Member(key + extension, sample.bytes));
    const auto [field, text] = LabelMember(sample, label);
    if (!field.empty()) HETERO_RETURN_IF_ERROR(Member(key + field, BytesOf(text)));
    ++shard_.samples;
    return absl::OkStatus();
  }

  absl::StatusOr<std::pair<PackedShard, storage::Object>> Close() {
    HETERO_RETURN_IF_ERROR(Append(BytesOf(std::string(source::kTarEnd, '\0'))));
    HETERO_ASSIGN_OR_RETURN(const storage::Object object, writer_->Close());
    shard_.version = object.version;
    return std::make_pair(shard_, object);
  }

  // What a sample takes in an archive.
  static int64_t SizeOf(const source::RawSample& sample, const api::Label& label) {
    const auto member = [](size_t size) {
      return source::kTarBlock + size + source::TarPadding(static_cast<int64_t>(size));
    };
    size_t size = member(sample.bytes.size());
    if (label.type != api::LabelType::kNone) {
      size += member(LabelMember(sample, label).second.size());
    }
    return static_cast<int64_t>(size);
  }

 private:
  absl::Status Member(const std::string& name, absl::Span<const uint8_t> bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    HETERO_RETURN_IF_ERROR(Append(BytesOf(source::TarHeader(name, size))));
    HETERO_RETURN_IF_ERROR(Append(bytes));
    return Append(BytesOf(std::string(source::TarPadding(size), '\0')));
  }
  absl::Status Append(absl::Span<const uint8_t> bytes) {
    shard_.bytes += static_cast<int64_t>(bytes.size());
    shard_.crc = base::Crc32c(bytes.data(), bytes.size(), shard_.crc);
    return writer_->Append(bytes);
  }

  const std::unique_ptr<storage::ObjectWriter> writer_;
  PackedShard shard_;
};

class Packer {
 public:
  Packer(const PackOptions& options, const source::Dataset& dataset,
         storage::WritableStore& destination)
      : options_(options), dataset_(dataset), destination_(destination) {}

  absl::StatusOr<PackProgress> Pack() {
    HETERO_RETURN_IF_ERROR(GoOn());
    absl::Status status = PackRest();
    // What is whole stays, however this ended.
    status.Update(WriteRecord());
    HETERO_RETURN_IF_ERROR(status);
    return progress_;
  }

 private:
  // What decides the bytes of all shards.
  std::string Source() const {
    const api::Label& label = options_.label;
    return absl::StrCat(dataset_.fingerprint(), " ", dataset_.size(), " WebDataset ",
                        options_.shard_bytes, " ", std::string(api::NameOf(label.type)));
  }
  absl::Status HoldsOther(const std::string& what) const {
    return absl::FailedPreconditionError(
        absl::StrCat(destination_.uri(), ": ", what, "; choose another destination, or empty it"));
  }

  // Finds what is there already.
  absl::Status GoOn() {
    record_.source = Source();
    HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects, destination_.List(""));
    if (objects.empty()) return absl::OkStatus();
    const auto record =
        std::find_if(objects.begin(), objects.end(),
                     [](const storage::Object& object) { return object.name == kPackRecord; });
    if (record == objects.end()) {
      return HoldsOther(absl::StrCat("holds ", objects.front().name));
    }
    if (record->size > kMostRecordBytes) return HoldsOther("its _pack.json is too large");
    std::string text(static_cast<size_t>(record->size), '\0');
    HETERO_RETURN_IF_ERROR(
        destination_.Read(*record, 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
    absl::StatusOr<PackRecord> there = ReadPackRecord(text);
    if (!there.ok()) return HoldsOther(absl::StrCat("its _pack.json ", there.status().message()));
    if (there->source != record_.source) {
      return HoldsOther("holds shards of another dataset, or of another --shard-size");
    }
    for (PackedShard& shard : there->shards) {
      const storage::Object wanted = {shard.name, shard.bytes, shard.version};
      if (std::find(objects.begin(), objects.end(), wanted) == objects.end()) break;
      progress_.bytes += shard.bytes;
      progress_.samples += shard.samples;
      record_.shards.push_back(std::move(shard));
    }
    progress_.shards = static_cast<int64_t>(record_.shards.size());
    progress_.kept = progress_.samples;
    return absl::OkStatus();
  }

  absl::Status PackRest() {
    HETERO_RETURN_IF_ERROR(WriteRecord());  // whose shards these are, before there is any
    while (progress_.samples < dataset_.size()) {
      const int64_t first = progress_.samples;
      const int64_t count = std::min(kReadAtOnce, dataset_.size() - first);
      HETERO_RETURN_IF_ERROR(source::InParallel(static_cast<size_t>(count), [&](size_t i) {
        return Read(first + static_cast<int64_t>(i), &samples_[i]);
      }));
      for (int64_t i = 0; i < count; ++i) {
        if (options_.stop.stop_requested()) {
          return absl::CancelledError(absl::StrCat(destination_.uri(), ": stopped after ",
                                                   progress_.samples, " of ", dataset_.size(),
                                                   " samples; the same command goes on"));
        }
        HETERO_RETURN_IF_ERROR(Add(first + i, samples_[static_cast<size_t>(i)]));
      }
    }
    HETERO_RETURN_IF_ERROR(CloseShard());
    Tell(/*now=*/true);
    return absl::OkStatus();
  }

  absl::Status Read(int64_t id, source::RawSample* sample) const {
    absl::Status status = dataset_.Read(id, sample);
    if (status.ok() && sample->encoding == source::Encoding::kRaw) {
      status = EncodePng(sample->shape, &sample->bytes);
      if (!status.ok()) {
        status = absl::Status(status.code(),
                              absl::StrCat(dataset_.Describe(id), ": ", status.message()));
      }
    }
    return status;
  }

  absl::Status Add(int64_t id, const source::RawSample& sample) {
    const int64_t size = Shard::SizeOf(sample, options_.label);
    if (shard_ != nullptr &&
        shard_->bytes() + size + static_cast<int64_t>(source::kTarEnd) > options_.shard_bytes) {
      HETERO_RETURN_IF_ERROR(CloseShard());
    }
    if (shard_ == nullptr) {
      std::string name = absl::StrFormat("shard-%06d.tar", record_.shards.size());
      HETERO_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectWriter> writer,
                              destination_.Create(name));
      shard_ = std::make_unique<Shard>(std::move(name), std::move(writer));
    }
    HETERO_RETURN_IF_ERROR(shard_->Add(id, sample, options_.label));
    ++progress_.samples;
    progress_.bytes += size;
    Tell(/*now=*/false);
    return absl::OkStatus();
  }

  absl::Status CloseShard() {
    if (shard_ == nullptr) return absl::OkStatus();
    HETERO_ASSIGN_OR_RETURN(auto written, shard_->Close());
    shard_.reset();
    auto& [shard, object] = written;
    if (options_.verify) HETERO_RETURN_IF_ERROR(Verify(shard, object));
    progress_.bytes += static_cast<int64_t>(source::kTarEnd);
    record_.shards.push_back(std::move(shard));
    ++progress_.shards;
    if (Clock::now() - recorded_ < kBetweenRecords) return absl::OkStatus();
    return WriteRecord();
  }

  absl::Status Verify(const PackedShard& shard, const storage::Object& object) const {
    std::vector<uint8_t> block(kReadBack);
    uint32_t crc = 0;
    for (int64_t at = 0; at < object.size; at += static_cast<int64_t>(kReadBack)) {
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
    HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectWriter> writer,
                            destination_.Create(kPackRecord));
    HETERO_RETURN_IF_ERROR(writer->Append(BytesOf(ToJson(record_))));
    HETERO_RETURN_IF_ERROR(writer->Close().status());
    recorded_ = Clock::now();
    return absl::OkStatus();
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
  PackRecord record_;
  PackProgress progress_;
  std::unique_ptr<Shard> shard_;
  std::vector<source::RawSample> samples_ = std::vector<source::RawSample>(kReadAtOnce);
  Clock::time_point recorded_;
  Clock::time_point told_;
};

}  // namespace

std::string ProgressText(const PackProgress& progress, int64_t samples, double seconds) {
  std::string text = absl::StrCat("packed ", insight::CountText(progress.samples), " of ",
                                  insight::CountText(samples), " samples, ", progress.shards,
                                  progress.shards == 1 ? " shard, " : " shards, ",
                                  insight::BytesText(static_cast<double>(progress.bytes)));
  const auto packed = static_cast<double>(progress.samples - progress.kept);
  if (packed <= 0 || seconds <= 1) return text;
  absl::StrAppend(&text, ", ", insight::NumberText(packed / seconds), " samples/s");
  if (progress.samples == samples) return text;
  const double left = seconds / packed * static_cast<double>(samples - progress.samples);
  return absl::StrCat(text, ", ", insight::DurationText(left), " left");
}

absl::StatusOr<Packed> PackDataset(const PackOptions& options) {
  HETERO_ASSIGN_OR_RETURN(
      const std::unique_ptr<source::Dataset> dataset,
      source::OpenDataset(options.source, job::Split::kTrain, /*seed=*/0, options.label));
  absl::string_view folder = options.destination;
  if (absl::ConsumePrefix(&folder, "file://")) {
    std::error_code error;
    std::filesystem::create_directories(std::string(folder), error);
    if (error) {
      return absl::ErrnoToStatus(error.value(),
                                 absl::StrCat(options.destination, ": cannot make this folder"));
    }
  }
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableStore> destination,
                          storage::OpenWritableStore(options.destination));
  Packed packed;
  HETERO_ASSIGN_OR_RETURN(packed.progress, Packer(options, *dataset, *destination).Pack());
  packed.source.uri = options.destination;
  packed.source.format = api::DatasetFormat::kWebDataset;
  packed.source.samples = dataset->size();
  if (dataset->classes() > 0) packed.source.classes = dataset->classes();
  packed.label = {options.label.type, options.label.shape};
  if (options.label.numbers()) packed.source.fields.label.field = "json";
  return packed;
}

}  // namespace hetero::local
