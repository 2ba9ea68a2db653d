#include "runtime/train/checkpoint/checkpoint_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::train {
namespace {

namespace fs = std::filesystem;

constexpr char kTemporary[] = ".writing-";
constexpr char kReplaced[] = ".replaced-";

std::string Join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

absl::Status FileError(const std::error_code& error, const std::string& what) {
  return absl::ErrnoToStatus(error.value(), what);
}

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? FileError(error, path) : absl::OkStatus();
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

std::string CheckpointFolder::Where(const std::string& checkpoint) const {
  return Join(path_, checkpoint);
}

absl::StatusOr<std::vector<std::string>> CheckpointFolder::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return FileError(error, absl::StrCat("cannot list the checkpoint folder ", path_));
  }
  return names;
}

absl::StatusOr<int64_t> CheckpointFolder::SizeOf(const std::string& checkpoint,
                                                 const std::string& file) const {
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(Join(Where(checkpoint), file), error));
  if (error) return FileError(error, file);
  return size;
}

absl::StatusOr<std::string> CheckpointFolder::Read(const std::string& checkpoint,
                                                   const std::string& file, int64_t most) const {
  return base::ReadFile(Join(Where(checkpoint), file), most);
}

absl::Status CheckpointFolder::WriteAll(const std::string& checkpoint,
                                        const CheckpointFiles& files) const {
  const std::string folder = Where(checkpoint);
  const std::string temporary = Where(kTemporary + checkpoint);
  std::error_code error;
  fs::remove_all(temporary, error);
  fs::create_directories(temporary, error);
  if (error) return FileError(error, absl::StrCat("cannot create ", temporary));
  FolderInProgress in_progress(temporary);
  for (const auto& [file, bytes] : files) {
    HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(Join(temporary, file), bytes));
  }
  // A folder cannot be renamed over another that has files.
  const std::string replaced = Where(kReplaced + checkpoint);
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
  return absl::OkStatus();
}

absl::Status CheckpointFolder::Remove(const std::string& checkpoint) const {
  return RemoveFolder(Where(checkpoint));
}

absl::Status CheckpointFolder::RemoveLeftovers() const {
  HETERO_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  absl::Status first_error;
  for (const std::string& left : names) {
    if (left.starts_with(kTemporary) || left.starts_with(kReplaced)) {
      first_error.Update(RemoveFolder(Where(left)));
    }
  }
  return first_error;
}

}  // namespace hetero::train
