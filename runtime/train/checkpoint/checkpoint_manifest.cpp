#include "runtime/train/checkpoint/checkpoint_manifest.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hetero::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDigestDigits = 32;

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
      {"seed", manifest.seed},
      {"globalBatch", manifest.global_batch},
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
  try {
    manifest.format_version = json.at("formatVersion").get<int>();
    if (manifest.format_version > CheckpointManifest::kFormatVersion) {
      return absl::FailedPreconditionError(absl::StrCat(
          "it has format ", manifest.format_version, ", and this version reads up to ",
          CheckpointManifest::kFormatVersion, "; run the version that wrote it, or a newer one"));
    }
    json.at("job").get_to(manifest.job);
    json.at("run").get_to(manifest.run);
    json.at("createdUnixNs").get_to(manifest.created_unix_ns);
    json.at("generation").get_to(manifest.generation);
    json.at("worldSize").get_to(manifest.world_size);
    json.at("model").get_to(manifest.model);
    json.at("classes").get_to(manifest.classes);
    json.at("input").at(0).get_to(manifest.input.height);
    json.at("input").at(1).get_to(manifest.input.width);
    json.at("input").at(2).get_to(manifest.input.channels);
    json.at("optimizer").get_to(manifest.optimizer);
    json.at("samples").get_to(manifest.samples);
    json.at("datasetFingerprint").get_to(manifest.dataset_fingerprint);
    json.at("seed").get_to(manifest.seed);
    json.at("globalBatch").get_to(manifest.global_batch);
    json.at("step").get_to(manifest.step);
    json.at("epoch").get_to(manifest.epoch);
    json.at("nextSlot").get_to(manifest.next_slot);
    json.at("evaluatedStep").get_to(manifest.evaluated_step);
    json.at("samplesConsumed").get_to(manifest.samples_consumed);
    for (const Json& file : json.at("files")) {
      manifest.files.push_back({.name = file.at("name").get<std::string>(),
                                .bytes = file.at("bytes").get<int64_t>(),
                                .crc32c = file.at("crc32c").get<uint32_t>()});
    }
    absl::StatusOr<job::StreamDigest> digest =
        ParseDigest(json.at("streamDigest").get<std::string>());
    if (!digest.ok()) return digest.status();
    manifest.digest = *digest;
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("the manifest is malformed: ", error.what()));
  }
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
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it belongs to another job: ", absl::StrJoin(differences, ", ")));
}

}  // namespace hetero::train
