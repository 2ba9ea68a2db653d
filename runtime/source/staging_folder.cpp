#include "runtime/source/staging_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

constexpr char kPartial[] = ".partial";

absl::Status Failed(const fs::path& path, const char* action, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path.string(), ": cannot ", action));
}

absl::Status NotEmpty(const std::string& folder) {
  std::error_code ignored;
  if (fs::exists(fs::path(folder) / kPartial, ignored)) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": holds ", kPartial, " of a run that was cut off; remove the folder"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder, ": is not empty; name a new or empty folder"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagingFolder>> StagingFolder::Create(const std::string& folder) {
  if (folder.empty()) return absl::InvalidArgumentError("the folder to write has no name");
  std::error_code error;
  const bool created = fs::create_directories(folder, error);
  if (error) return Failed(folder, "create", error);
  const bool empty = fs::is_empty(folder, error);
  if (error) return Failed(folder, "list", error);
  if (!empty) return NotEmpty(folder);
  std::unique_ptr<StagingFolder> staging(new StagingFolder(folder, created));
  fs::create_directory(staging->partial_, error);
  if (error) return Failed(staging->partial_, "create", error);
  return staging;
}

StagingFolder::StagingFolder(std::string folder, bool created)
    : folder_(std::move(folder)),
      partial_(absl::StrCat(folder_, "/", kPartial)),
      created_(created) {}

StagingFolder::~StagingFolder() {
  if (committed_) return;
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  if (created_) fs::remove(folder_, ignored);
}

absl::Status StagingFolder::MakeFolder(const std::string& relative) {
  std::error_code error;
  const fs::path path = fs::path(partial_) / relative;
  fs::create_directories(path, error);
  return error ? Failed(path, "create", error) : absl::OkStatus();
}

absl::Status StagingFolder::Commit() {
  std::error_code error;
  std::vector<fs::path> written;
  for (fs::directory_iterator entry(partial_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    written.push_back(entry->path());
  }
  if (error) return Failed(partial_, "list", error);
  for (const fs::path& path : written) {
    fs::rename(path, fs::path(folder_) / path.filename(), error);
    if (error) return Failed(path, "move into place", error);
  }
  fs::remove(partial_, error);
  if (error) return Failed(partial_, "remove", error);
  committed_ = true;
  return absl::OkStatus();
}

}  // namespace hetero::source
