#include "runtime/train/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "step-";
constexpr char kTemporary[] = ".writing-";
constexpr char kReplaced[] = ".replaced-";
constexpr char kManifest[] = "manifest.json";
constexpr char kDone[] = "DONE";

std::string Join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

absl::Status FileError(const std::error_code& error, const std::string& what) {
  return absl::ErrnoToStatus(error.value(), what);
}

uint32_t Crc(const std::string& bytes) { return base::Crc32c(bytes.data(), bytes.size()); }

// Of "step-000000000020" and "step-000000000020-2"; -1 for other names.
int64_t StepOf(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  int64_t step = -1;
  int64_t copy = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, kPrefix)) return -1;
  const size_t dash = digits.find('-');
  const bool numbered =
      dash == absl::string_view::npos || absl::SimpleAtoi(digits.substr(dash + 1), &copy);
  if (!numbered || !absl::SimpleAtoi(digits.substr(0, dash), &step)) return -1;
  return step;
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder) {
  absl::StatusOr<std::string> done = base::ReadFile(Join(folder, kDone));
  if (!done.ok()) return absl::DataLossError("it was not written to its end (no DONE)");
  absl::StatusOr<std::string> text = base::ReadFile(Join(folder, kManifest));
  if (!text.ok()) return absl::DataLossError(text.status().message());
  if (*done != absl::StrFormat("%08x\n", Crc(*text))) {
    return absl::DataLossError(absl::StrCat(kManifest, " does not have the CRC that DONE names"));
  }
  return ParseCheckpointManifest(*text);
}

absl::Status ReadFiles(const std::string& folder, const CheckpointManifest& manifest,
                       std::map<std::string, std::string>& files) {
  for (const CheckpointFile& file : manifest.files) {
    // Looked at before memory is asked for: a file that was made longer is damaged.
    std::error_code error;
    const auto size = static_cast<int64_t>(fs::file_size(Join(folder, file.name), error));
    if (!error && size != file.bytes) {
      return absl::DataLossError(
          absl::StrCat(file.name, " has ", size, " bytes instead of ", file.bytes));
    }
    absl::StatusOr<std::string> bytes = base::ReadFile(Join(folder, file.name), file.bytes);
    if (absl::IsNotFound(bytes.status())) {
      return absl::DataLossError(absl::StrCat(file.name, " is missing"));
    }
    HETERO_RETURN_IF_ERROR(bytes.status());
    if (static_cast<int64_t>(bytes->size()) != file.bytes) {
      return absl::DataLossError(
          absl::StrCat(file.name, " has ", bytes->size(), " bytes instead of ", file.bytes));
    }
    if (Crc(*bytes) != file.crc32c) {
      return absl::DataLossError(absl::StrCat(file.name, " does not have its CRC"));
    }
    files[file.name] = *std::move(bytes);
  }
  return absl::OkStatus();
}

class FolderInProgress {
 public:
  explicit FolderInProgress(std::string path) : path_(std::move(path)) {}
  ~FolderInProgress() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  FolderInProgress(const FolderInProgress&) = delete;
  FolderInProgress& operator=(const FolderInProgress&) = delete;
  void Keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace

absl::Status CheckpointFolder::Create() const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (!error) return absl::OkStatus();
  return FileError(error, absl::StrCat("cannot create the checkpoint folder ", path_));
}

std::string CheckpointFolder::NameBeside(const std::vector<Found>& found, const std::string& name,
                                         const std::string& run) {
  std::string free = name;
  for (int copy = 2;; ++copy) {
    const auto holder = std::find_if(found.begin(), found.end(), [&free](const Found& other) {
      return fs::path(other.folder).filename() == free;
    });
    const bool taken =
        holder != found.end() && (!holder->manifest.ok() || holder->manifest->run != run);
    if (!taken) return free;
    free = absl::StrCat(name, "-", copy);
  }
}

absl::StatusOr<std::string> CheckpointFolder::Write(CheckpointManifest manifest,
                                                    const CheckpointFiles& files,
                                                    bool beside_others) const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<Found> found, List());
  for (const Found& other : found) {
    if (!other.manifest.ok() || other.manifest->created_unix_ns == INT64_MAX) continue;
    manifest.created_unix_ns =
        std::max(manifest.created_unix_ns, other.manifest->created_unix_ns + 1);
  }
  std::string name = absl::StrFormat("%s%012d", kPrefix, manifest.step);
  if (beside_others) name = NameBeside(found, name, manifest.run);
  const std::string folder = Join(path_, name);
  const std::string temporary = Join(path_, kTemporary + name);
  std::error_code error;
  fs::remove_all(temporary, error);
  fs::create_directories(temporary, error);
  if (error) return FileError(error, absl::StrCat("cannot create ", temporary));
  FolderInProgress in_progress(temporary);

  manifest.files.clear();
  for (const auto& [file, bytes] : files) {
    HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(Join(temporary, file), bytes));
    manifest.files.push_back(
        {.name = file, .bytes = static_cast<int64_t>(bytes.size()), .crc32c = Crc(bytes)});
  }
  const std::string text = ToJson(manifest);
  HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(Join(temporary, kManifest), text));
  HETERO_RETURN_IF_ERROR(
      base::WriteFileAtomically(Join(temporary, kDone), absl::StrFormat("%08x\n", Crc(text))));

  // A folder cannot be renamed over another that has files.
  const std::string replaced = Join(path_, kReplaced + name);
  fs::remove_all(replaced, error);
  if (fs::exists(folder, error)) {
    fs::rename(folder, replaced, error);
    if (error) return FileError(error, absl::StrCat("cannot replace ", folder));
  }
  fs::rename(temporary, folder, error);
  if (error) return FileError(error, absl::StrCat("cannot rename ", temporary));
  in_progress.Keep();
  HETERO_RETURN_IF_ERROR(base::SyncFolder(path_));
  fs::remove_all(replaced, error);
  return folder;
}

absl::StatusOr<std::vector<CheckpointFolder::Found>> CheckpointFolder::List() const {
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string folder = entry->path().string();
    if (StepOf(folder) >= 0) found.push_back({folder, ReadManifest(folder)});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return FileError(error, absl::StrCat("cannot list the checkpoint folder ", path_));
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (a.manifest.ok() != b.manifest.ok()) return b.manifest.ok();
    if (a.manifest.ok() && a.manifest->created_unix_ns != b.manifest->created_unix_ns) {
      return a.manifest->created_unix_ns > b.manifest->created_unix_ns;
    }
    return StepOf(a.folder) > StepOf(b.folder);
  });
  return found;
}

absl::Status CheckpointFolder::Prune(int keep, const std::string& run,
                                     const std::string& written) const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<Found> found, List());
  std::error_code error;
  std::error_code first_error;
  const auto remove = [&](const std::string& folder) {
    fs::remove_all(folder, error);
    if (error && !first_error) first_error = error;
  };
  const bool any_good = !found.empty() && found.back().manifest.ok();
  int kept = written.empty() ? 0 : 1;
  for (const Found& checkpoint : found) {
    if (checkpoint.folder == written) continue;
    if (!checkpoint.manifest.ok()) {
      // Another program's is none of ours; a damaged one helps nobody once a good one is there.
      const bool ours = run.empty() && absl::IsDataLoss(checkpoint.manifest.status());
      if (ours && any_good) remove(checkpoint.folder);
      continue;
    }
    if (!run.empty() && checkpoint.manifest->run != run) continue;
    if (++kept > keep) remove(checkpoint.folder);
  }
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kTemporary) || name.starts_with(kReplaced)) remove(entry->path().string());
  }
  if (first_error) {
    return FileError(first_error, absl::StrCat("cannot remove old checkpoints from ", path_));
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointFolder::Loaded> CheckpointFolder::LoadNewest(
    const CheckpointManifest& job, const std::string& run) const {
  HETERO_ASSIGN_OR_RETURN(std::vector<Found> found, List());
  Loaded loaded;
  for (Found& checkpoint : found) {
    absl::Status status = checkpoint.manifest.status();
    if (!run.empty() && (!status.ok() || checkpoint.manifest->run != run)) continue;
    if (status.ok()) {
      status = CheckFits(*checkpoint.manifest, job);
      if (status.ok()) {
        loaded.files.clear();
        status = ReadFiles(checkpoint.folder, *checkpoint.manifest, loaded.files);
      }
    }
    if (status.ok()) {
      loaded.folder = checkpoint.folder;
      loaded.manifest = *std::move(checkpoint.manifest);
      return loaded;
    }
    const std::string why = absl::StrCat(checkpoint.folder, ": ", status.message());
    if (!absl::IsDataLoss(status)) {
      return absl::Status(status.code(),
                          absl::StrCat("cannot resume from ", why,
                                       ". Choose another spec.training.checkpoint.uri, or start "
                                       "anew with resume: Never"));
    }
    loaded.damaged.push_back(why);
  }
  if (loaded.damaged.empty()) {
    return absl::NotFoundError(absl::StrCat(path_, " has no checkpoint"));
  }
  return absl::DataLossError(absl::StrCat(
      "every checkpoint is damaged: ", absl::StrJoin(loaded.damaged, "; "),
      ". Choose another spec.training.checkpoint.uri, or start anew with resume: Never"));
}

}  // namespace hetero::train
