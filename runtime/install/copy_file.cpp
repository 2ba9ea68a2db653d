#include "runtime/install/copy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::install {
namespace {

absl::Status SystemError(const char* action, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(action, " ", path));
}

absl::Status Write(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteNew(std::string& temporary, std::string_view bytes, mode_t mode) {
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return SystemError("cannot create", temporary);
  absl::Status status = Write(fd, bytes, temporary);
  if (status.ok() && fchmod(fd, mode) != 0)
    status = SystemError("cannot set the mode of", temporary);
  if (close(fd) != 0 && status.ok()) status = SystemError("cannot write", temporary);
  return status;
}

// Whether the file has these bytes; an error other than its absence is one.
absl::StatusOr<bool> Holds(const std::string& path, std::string_view bytes) {
  const absl::StatusOr<std::string> found =
      base::ReadFile(path, static_cast<int64_t>(bytes.size()));
  if (found.ok()) return *found == bytes;
  if (absl::IsNotFound(found.status()) || absl::IsOutOfRange(found.status())) return false;
  return found.status();
}

}  // namespace

absl::Status PutFile(const std::string& path, std::string_view bytes, bool executable) {
  const mode_t mode = executable ? 0755 : 0644;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create ", folder.string()));
  }
  struct stat info;
  const bool there = stat(path.c_str(), &info) == 0 && (info.st_mode & 0777) == mode;
  HETERO_ASSIGN_OR_RETURN(const bool same, Holds(path, bytes));
  if (there && same) return absl::OkStatus();

  std::string temporary = path + ".XXXXXX";
  absl::Status status = WriteNew(temporary, bytes, mode);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError("cannot rename a finished file to", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  HETERO_ASSIGN_OR_RETURN(const bool kept, Holds(path, bytes));
  if (kept) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, " was written and is read back with other bytes; use another volume"));
}

}  // namespace hetero::install
