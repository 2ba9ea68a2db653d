#include "runtime/train/checkpoint/checkpoint_manifest.h"

#include <concepts>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDigestDigits = 32;

// Reads fields; the first that is missing or does not fit stays in status(). Not nlohmann's own
// conversions: they make a number of any other, whether it fits or not.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  const absl::Status& status() const { return status_; }

  void Read(const char* name, std::string* value) {
    const Json& field = Find(name);
    if (!field.is_string()) return Fail(name, "no text");
    *value = field.get<std::string>();
  }
  // Of fields that older versions do not write.
  void ReadIfThere(const char* name, std::string* value) {
    if (!Find(name).is_null()) Read(name, value);
  }
  template <std::integral T>
  void Read(const char* name, T* value) {
    if (!Fits(Find(name), value)) Fail(name, "no whole number that fits");
  }
  void Read(const char* name, api::ImageShape* shape) {
    const Json& field = Find(name);
    if (!field.is_array() || field.size() != 3 || !Fits(field[0], &shape->height) ||
        !Fits(field[1], &shape->width) || !Fits(field[2], &shape->channels)) {
      Fail(name, "no height, width and channels");
    }
  }
  void Read(const char* name, std::vector<CheckpointFile>* files) {
    const Json& field = Find(name);
    if (!field.is_array()) return Fail(name, "no list");
    for (const Json& entry : field) {
      FieldReader reader(entry);
      CheckpointFile& file = files->emplace_back();
      reader.Read("name", &file.name);
      reader.Read("bytes", &file.bytes);
      reader.Read("crc32c", &file.crc32c);
      if (status_.ok()) status_ = reader.status();
    }
  }

 private:
  const Json& Find(const char* name) const {
    static const Json& missing = *new Json();
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    return found == object_.end() ? missing : *found;
  }

  template <std::integral T>
  static bool Fits(const Json& field, T* value) {
    if (!field.is_number_integer()) return false;
    const bool fits = field.is_number_unsigned() ? std::in_range<T>(field.get<uint64_t>())
                                                 : std::in_range<T>(field.get<int64_t>());
    if (fits) *value = field.get<T>();
    return fits;
  }

  void Fail(const char* name, const char* what) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(
        absl::StrCat("the manifest is malformed: ", name, " is missing or ", what));
  }

  const Json& object_;
  absl::Status status_;
};

absl::StatusOr<job::StreamDigest> ParseDigest(const std::string& hex) {
  uint64_t high = 0;
  uint64_t low = 0;
  if (hex.size() != kDigestDigits || !absl::SimpleHexAtoi(hex.substr(0, 16), &high) ||
      !absl::SimpleHexAtoi(hex.substr(16), &low)) {
    return absl::DataLossError(absl::StrCat("streamDigest \"", hex, "\" is not 32 hex digits"));
  }
  return job::StreamDigest(high, low);
}

std::string Describe(const api::ImageShape& shape) {
  return absl::StrCat(shape.height, "x", shape.width, "x", shape.channels);
}

}  // namespace

std::string ToJson(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", file.crc32c}});
  }
  const Json json = {
      {"formatVersion", manifest.format_version},
      {"job", manifest.job},
      {"run", manifest.run},
      {"createdUnixNs", manifest.created_unix_ns},
      {"generation", manifest.generation},
      {"worldSize", manifest.world_size},
      {"model", manifest.model},
      {"classes", manifest.classes},
      {"input", {manifest.input.height, manifest.input.width, manifest.input.channels}},
      {"optimizer", manifest.optimizer},
      {"samples", manifest.samples},
      {"datasetFingerprint", manifest.dataset_fingerprint},
      {"datasetVersions", manifest.dataset_versions},
      {"seed", manifest.seed},
      {"globalBatch", manifest.global_batch},
      {"shuffle", manifest.order.shuffle},
      {"lastBatch", manifest.order.last_batch},
      {"pipeline", manifest.order.pipeline},
      {"step", manifest.step},
      {"epoch", manifest.epoch},
      {"nextSlot", manifest.next_slot},
      {"evaluatedStep", manifest.evaluated_step},
      {"streamDigest", manifest.digest.ToHex()},
      {"samplesConsumed", manifest.samples_consumed},
      {"files", std::move(files)}};
  return json.dump(2) + "\n";
}

absl::StatusOr<CheckpointManifest> ParseCheckpointManifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("the manifest is not a JSON object");
  CheckpointManifest manifest;
  FieldReader reader(json);
  reader.Read("formatVersion", &manifest.format_version);
  if (manifest.format_version > CheckpointManifest::kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has format ", manifest.format_version, ", and this version reads up to ",
        CheckpointManifest::kFormatVersion, "; run the version that wrote it, or a newer one"));
  }
  reader.Read("job", &manifest.job);
  reader.Read("run", &manifest.run);
  reader.Read("createdUnixNs", &manifest.created_unix_ns);
  reader.Read("generation", &manifest.generation);
  reader.Read("worldSize", &manifest.world_size);
  reader.Read("model", &manifest.model);
  reader.Read("classes", &manifest.classes);
  reader.Read("input", &manifest.input);
  reader.Read("optimizer", &manifest.optimizer);
  reader.Read("samples", &manifest.samples);
  reader.Read("datasetFingerprint", &manifest.dataset_fingerprint);
  reader.ReadIfThere("datasetVersions", &manifest.dataset_versions);
  reader.Read("seed", &manifest.seed);
  reader.Read("globalBatch", &manifest.global_batch);
  reader.ReadIfThere("shuffle", &manifest.order.shuffle);
  reader.ReadIfThere("lastBatch", &manifest.order.last_batch);
  reader.ReadIfThere("pipeline", &manifest.order.pipeline);
  reader.Read("step", &manifest.step);
  reader.Read("epoch", &manifest.epoch);
  reader.Read("nextSlot", &manifest.next_slot);
  reader.Read("evaluatedStep", &manifest.evaluated_step);
  reader.Read("samplesConsumed", &manifest.samples_consumed);
  reader.Read("files", &manifest.files);
  std::string digest;
  reader.Read("streamDigest", &digest);
  HETERO_RETURN_IF_ERROR(reader.status());
  HETERO_ASSIGN_OR_RETURN(manifest.digest, ParseDigest(digest));
  return manifest;
}

absl::Status CheckFits(const CheckpointManifest& found, const CheckpointManifest& job) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const auto& theirs, const auto& ours) {
    if (theirs != ours) {
      differences.push_back(absl::StrCat(what, " ", theirs, " (this job: ", ours, ")"));
    }
  };
  compare("model", found.model, job.model);
  compare("classes", found.classes, job.classes);
  compare("input", Describe(found.input), Describe(job.input));
  compare("optimizer", found.optimizer, job.optimizer);
  compare("samples of the dataset", found.samples, job.samples);
  compare("fingerprint of the dataset", found.dataset_fingerprint, job.dataset_fingerprint);
  compare("seed", found.seed, job.seed);
  compare("samples per step (batchSizePerWorker x ranks x accumulation)", found.global_batch,
          job.global_batch);
  const auto compare_order = [&](const char* what, const std::string& theirs,
                                 const std::string& ours) {
    if (!theirs.empty()) compare(what, theirs, ours);
  };
  compare_order("dataset.shuffle", found.order.shuffle, job.order.shuffle);
  compare_order("training.lastBatch", found.order.last_batch, job.order.last_batch);
  compare_order("hash of the pipeline", found.order.pipeline, job.order.pipeline);
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it belongs to another job: ", absl::StrJoin(differences, ", ")));
}

}  // namespace hetero::train
