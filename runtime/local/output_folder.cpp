#include "runtime/local/output_folder.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "api/job_resource.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "runtime/local/output_lock.h"

namespace hetero::local {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResults[] = {"report.json", "report.html", "model.safetensors",
                                    "history.txt"};
constexpr char kJobFile[] = "job.json";  // as launcher.cpp writes it
constexpr const char* kFolders[] = {"logs", "tensorboard"};

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// A file of that name, whose first bytes have the words: a job has begun in this folder.
bool IsOurs(const fs::path& path, std::string_view words) {
  std::ifstream file(path);
  std::string text(size_t{1} << 16, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text.find(words) != std::string::npos;
}

// By a job of any release, here or on a cluster.
bool WasUsed(const fs::path& folder) {
  return Exists(folder / OutputLock::kName) || IsOurs(folder / kJobFile, api::kApiVersion) ||
         IsOurs(folder / "report.json", "\"attempts\"");
}

// `uri` is read by processes that begin after the folder has been cleared.
absl::Status CheckInput(const std::string& folder, const std::string& uri, const char* field) {
  const std::string path(absl::StripPrefix(uri, "file://"));
  std::error_code ignored;
  if (path.empty() || path.size() == uri.size()) return absl::OkStatus();
  for (const char* result : kResults) {
    if (!fs::equivalent(path, fs::path(folder) / result, ignored)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("spec.training.model.", field, ": ", path,
                     " is a result of an earlier run in the output folder, which this one would "
                     "remove first; choose another output folder with --output"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOutputFolder(const std::string& folder, const std::string& manifest,
                               const api::HeteroTrainingJob& job) {
  const api::Model& model = job.spec.training.model;
  HETERO_RETURN_IF_ERROR(CheckInput(folder, model.weights, "weights"));
  HETERO_RETURN_IF_ERROR(CheckInput(folder, model.torch_script, "torchScript"));
  std::error_code ignored;
  if (fs::equivalent(manifest, fs::path(folder) / kJobFile, ignored) &&
      !Exists(fs::path(folder) / OutputLock::kName)) {
    return absl::FailedPreconditionError(
        absl::StrCat("output folder ", folder, ": the job would write over its own manifest, ",
                     manifest, "; choose another folder with --output"));
  }
  if (WasUsed(folder)) return absl::OkStatus();
  const auto taken = [&folder](const char* name) -> absl::Status {
    return absl::FailedPreconditionError(
        absl::StrCat("output folder ", folder, " has a '", name,
                     "' that is no job's, and a job would remove it; choose another folder with "
                     "--output, or move that away"));
  };
  for (const char* name : kResults) {
    if (Exists(fs::path(folder) / name)) return taken(name);
  }
  for (const char* name : kFolders) {
    const fs::path path = fs::path(folder) / name;
    if (Exists(path) && !fs::is_empty(path, ignored)) return taken(name);
  }
  return absl::OkStatus();
}

absl::Status PrepareOutputFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder) / "logs", error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "output folder ", folder, ": ", error.message(), "; choose another with --output"));
  }
  // A report is small, but a full disk must show now and not after hours of training.
  const std::string probe = (fs::path(folder) / ".probe").string();
  const absl::Status written = base::WriteFileAtomically(probe, std::string(256 * 1024, 'x'));
  fs::remove(probe, error);
  if (!written.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write to the output folder: ", written.message(),
                     "; free some space or choose another with --output"));
  }
  return absl::OkStatus();
}

void RemoveOldResults(const std::string& folder, const api::HeteroTrainingJob& job) {
  std::error_code ignored;
  for (const char* result : kResults) fs::remove(fs::path(folder) / result, ignored);
  fs::remove_all(fs::path(folder) / "logs", ignored);
  if (!job.spec.training.checkpoint) {  // else the curves go on where they ended
    fs::remove_all(fs::path(folder) / "tensorboard", ignored);
  }
  fs::create_directories(fs::path(folder) / "logs", ignored);
}

}  // namespace hetero::local
