#include "runtime/train/checkpoint/checkpoint_place.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

constexpr char kManifest[] = "manifest.json";
constexpr int64_t kMostManifestBytes = int64_t{16} << 20;

uint32_t CrcOf(const std::string& bytes) { return base::Crc32c(bytes.data(), bytes.size()); }

}  // namespace

// Of "step-000000000020" and "step-000000000020-2".
int64_t StepOfCheckpoint(const std::string& name) {
  int64_t step = -1;
  int64_t copy = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, kCheckpointPrefix)) return -1;
  const size_t dash = digits.find('-');
  const bool numbered =
      dash == absl::string_view::npos || absl::SimpleAtoi(digits.substr(dash + 1), &copy);
  if (!numbered || !absl::SimpleAtoi(digits.substr(0, dash), &step)) return -1;
  return step;
}

absl::StatusOr<CheckpointManifest> CheckpointPlace::ReadManifest(
    const std::string& checkpoint) const {
  absl::StatusOr<std::string> done = Read(checkpoint, kCheckpointDone, kMostManifestBytes);
  if (!done.ok()) {
    if (IsOfPlace(done.status())) return done.status();
    return absl::DataLossError("it was not written to its end (no DONE)");
  }
  absl::StatusOr<std::string> text = Read(checkpoint, kManifest, kMostManifestBytes);
  if (!text.ok()) {
    if (IsOfPlace(text.status())) return text.status();
    return absl::DataLossError(text.status().message());
  }
  if (*done != absl::StrFormat("%08x\n", CrcOf(*text))) {
    return absl::DataLossError(absl::StrCat(kManifest, " does not have the CRC that DONE names"));
  }
  return ParseCheckpointManifest(*text);
}

absl::Status CheckpointPlace::ReadFiles(const std::string& checkpoint,
                                        const CheckpointManifest& manifest,
                                        std::map<std::string, std::string>& files) const {
  for (const CheckpointFile& file : manifest.files) {
    // Looked at before memory is asked for: a file that was made longer is damaged.
    const absl::StatusOr<int64_t> size = SizeOf(checkpoint, file.name);
    if (size.ok() && *size != file.bytes) {
      return absl::DataLossError(
          absl::StrCat(file.name, " has ", *size, " bytes instead of ", file.bytes));
    }
    absl::StatusOr<std::string> bytes = Read(checkpoint, file.name, file.bytes);
    if (absl::IsNotFound(bytes.status())) {
      return absl::DataLossError(absl::StrCat(file.name, " is missing"));
    }
    HETERO_RETURN_IF_ERROR(bytes.status());
    if (static_cast<int64_t>(bytes->size()) != file.bytes) {
      return absl::DataLossError(
          absl::StrCat(file.name, " has ", bytes->size(), " bytes instead of ", file.bytes));
    }
    if (CrcOf(*bytes) != file.crc32c) {
      return absl::DataLossError(absl::StrCat(file.name, " does not have its CRC"));
    }
    files[file.name] = *std::move(bytes);
  }
  return absl::OkStatus();
}

template <typename Stays>
std::string CheckpointPlace::NameBeside(const std::vector<Found>& found, const std::string& name,
                                        Stays stays) {
  std::string free = name;
  for (int copy = 2;; ++copy) {
    const auto holder = std::find_if(found.begin(), found.end(),
                                     [&free](const Found& other) { return other.name == free; });
    if (holder == found.end() || !stays(*holder)) return free;
    free = absl::StrCat(name, "-", copy);
  }
}

absl::StatusOr<std::string> CheckpointPlace::Write(CheckpointManifest manifest,
                                                   CheckpointFiles files,
                                                   bool beside_others) const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<Found> found, List());
  for (const Found& other : found) {
    if (!other.manifest.ok() || other.manifest->created_unix_ns == INT64_MAX) continue;
    manifest.created_unix_ns =
        std::max(manifest.created_unix_ns, other.manifest->created_unix_ns + 1);
  }
  const auto is_others = [&](const Found& other) {
    return beside_others && (!other.manifest.ok() || other.manifest->run != manifest.run);
  };
  const std::string checkpoint =
      NameBeside(found, absl::StrFormat("%s%012d%s", kCheckpointPrefix, manifest.step, Suffix()),
                 [&](const Found& other) { return !Replaces() || is_others(other); });

  manifest.files.clear();
  for (const auto& [file, bytes] : files) {
    manifest.files.push_back(
        {.name = file, .bytes = static_cast<int64_t>(bytes.size()), .crc32c = CrcOf(bytes)});
  }
  std::string text = ToJson(manifest);
  std::string done = absl::StrFormat("%08x\n", CrcOf(text));
  files.emplace_back(kManifest, std::move(text));
  files.emplace_back(kCheckpointDone, std::move(done));
  HETERO_RETURN_IF_ERROR(WriteAll(checkpoint, files));
  for (const Found& other : found) {
    const bool gives_way =
        StepOfCheckpoint(other.name) == manifest.step && other.name != checkpoint;
    // What cannot be removed now goes with the old ones.
    if (!Replaces() && gives_way && !is_others(other)) Remove(other.name).IgnoreError();
  }
  return Where(checkpoint);
}

absl::StatusOr<std::vector<CheckpointPlace::Found>> CheckpointPlace::List() const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  std::vector<Found> found;
  for (const std::string& checkpoint : names) {
    if (StepOfCheckpoint(checkpoint) < 0) continue;
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(checkpoint);
    if (IsOfPlace(manifest.status())) return manifest.status();
    found.push_back({checkpoint, std::move(manifest)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.manifest.ok() != b.manifest.ok()) return b.manifest.ok();
    if (a.manifest.ok() && a.manifest->created_unix_ns != b.manifest->created_unix_ns) {
      return a.manifest->created_unix_ns > b.manifest->created_unix_ns;
    }
    return StepOfCheckpoint(a.name) > StepOfCheckpoint(b.name);
  });
  return found;
}

absl::Status CheckpointPlace::Prune(int keep, const std::string& run,
                                    const std::string& written) const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<Found> found, List());
  absl::Status first_error;
  const bool any_good = !found.empty() && found.back().manifest.ok();
  int kept = written.empty() ? 0 : 1;
  for (const Found& checkpoint : found) {
    if (Where(checkpoint.name) == written) continue;
    if (!checkpoint.manifest.ok()) {
      // Another program's is none of ours; a damaged one helps nobody once a good one is there.
      const bool ours = run.empty() && absl::IsDataLoss(checkpoint.manifest.status());
      if (ours && any_good) first_error.Update(Remove(checkpoint.name));
      continue;
    }
    if (!run.empty() && checkpoint.manifest->run != run) continue;
    if (++kept > keep) first_error.Update(Remove(checkpoint.name));
  }
  first_error.Update(RemoveLeftovers());
  if (first_error.ok()) return absl::OkStatus();
  return absl::Status(first_error.code(), absl::StrCat("cannot remove old checkpoints from ",
                                                       name(), ": ", first_error.message()));
}

absl::StatusOr<CheckpointPlace::Loaded> CheckpointPlace::LoadNewest(const CheckpointManifest& job,
                                                                    const std::string& run) const {
  HETERO_ASSIGN_OR_RETURN(std::vector<Found> found, List());
  Loaded loaded;
  for (Found& checkpoint : found) {
    absl::Status status = checkpoint.manifest.status();
    if (!run.empty() && (!status.ok() || checkpoint.manifest->run != run)) continue;
    if (status.ok()) {
      status = CheckFits(*checkpoint.manifest, job);
      if (status.ok()) {
        loaded.files.clear();
        status = ReadFiles(checkpoint.name, *checkpoint.manifest, loaded.files);
      }
    }
    if (status.ok()) {
      loaded.folder = Where(checkpoint.name);
      loaded.manifest = *std::move(checkpoint.manifest);
      return loaded;
    }
    if (IsOfPlace(status)) return status;
    const std::string why = absl::StrCat(Where(checkpoint.name), ": ", status.message());
    if (!absl::IsDataLoss(status)) {
      return absl::Status(status.code(),
                          absl::StrCat("cannot resume from ", why,
                                       ". Choose another spec.training.checkpoint.uri, or start "
                                       "anew with resume: Never"));
    }
    loaded.damaged.push_back(why);
  }
  if (loaded.damaged.empty()) {
    return absl::NotFoundError(absl::StrCat(name(), " has no checkpoint"));
  }
  return absl::DataLossError(absl::StrCat(
      "every checkpoint is damaged: ", absl::StrJoin(loaded.damaged, "; "),
      ". Choose another spec.training.checkpoint.uri, or start anew with resume: Never"));
}

}  // namespace hetero::train
