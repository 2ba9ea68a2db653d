#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/status_macros.h"

namespace hetero::base {
namespace {

absl::Status SystemError(int error, std::string_view action, const std::string& path) {
  return absl::ErrnoToStatus(error, std::string(action) + " " + path);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  // 0, or -1 with errno set.
  int Close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 ? 0 : close(fd);
  }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "cannot write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// `temporary` ends in XXXXXX and is given its real name once the file exists.
absl::Status WriteAndRename(std::string* temporary, std::string_view bytes,
                            const std::string& path) {
  FileDescriptor file(mkostemp(temporary->data(), O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    temporary->clear();
    return SystemError(error, "cannot create a temporary file beside", path);
  }
  // mkostemp gives a file to its owner alone.
  if (fchmod(file.get(), 0644) != 0) return SystemError(errno, "cannot set the mode of", path);
  HETERO_RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  if (fsync(file.get()) != 0) return SystemError(errno, "cannot sync", path);
  if (file.Close() != 0) return SystemError(errno, "cannot close", path);
  if (rename(temporary->c_str(), path.c_str()) != 0) {
    return SystemError(errno, "cannot rename a finished file to", path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  // Random, because writers in other pods may have the same process id.
  std::string temporary = path + ".tmp.XXXXXX";
  if (absl::Status status = WriteAndRename(&temporary, bytes, path); !status.ok()) {
    if (!temporary.empty()) unlink(temporary.c_str());
    return status;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return SyncFolder(folder.empty() ? "." : folder.string());
}

absl::Status SyncFolder(const std::string& folder) {
  FileDescriptor directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError(errno, "cannot open folder", folder);
  // Some network file systems cannot sync a folder and need not.
  if (fsync(directory.get()) != 0 && errno != EINVAL) {
    return SystemError(errno, "cannot sync folder", folder);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(errno, "cannot open", path);
  const auto too_large = [&](int64_t size) {
    return absl::OutOfRangeError(absl::StrCat("cannot read ", path, ": it has ", size,
                                              " bytes, and at most ", limit, " are expected"));
  };
  std::string bytes;
  struct stat info;
  if (fstat(file.get(), &info) == 0 && info.st_size > 0) {
    if (info.st_size > limit) return too_large(info.st_size);
    bytes.reserve(info.st_size);
  }
  char buffer[65536];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count == 0) return bytes;
    if (count > 0) {
      bytes.append(buffer, static_cast<size_t>(count));
      // A pipe says nothing of its size, and a file may grow.
      if (static_cast<int64_t>(bytes.size()) > limit) {
        return too_large(static_cast<int64_t>(bytes.size()));
      }
    } else if (errno != EINTR) {
      return SystemError(errno, "cannot read", path);
    }
  }
}

}  // namespace hetero::base
