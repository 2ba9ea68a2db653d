#include "runtime/storage/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "runtime/storage/file_descriptor.h"
#include "runtime/storage/file_listing.h"

namespace hetero::storage {
namespace {

absl::Status Failed(int error, std::string_view action, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", std::string(action), " file://", path));
}

// Of the root there is one already.
absl::Status MakeFoldersOf(const std::string& root, const std::string& path) {
  for (size_t slash = path.find('/', root.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return Failed(errno, "make the folder", folder);
    }
  }
  return absl::OkStatus();
}

// A file under a name of its own beside the one that it is for.
class PartialFile : public ObjectWriter {
 public:
  PartialFile(std::string root, std::string name)
      : name_(std::move(name)), path_(absl::StrCat(root, "/", name_)), root_(std::move(root)) {}
  ~PartialFile() override {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  absl::Status Open() {
    HETERO_RETURN_IF_ERROR(MakeFoldersOf(root_, path_));
    temporary_ =
        absl::StrCat(path_.substr(0, path_.rfind('/') + 1),
                     absl::string_view(kTemporaryMark.data(), kTemporaryMark.size()), "XXXXXX");
    file_ = FileDescriptor(mkostemp(temporary_.data(), O_CLOEXEC));
    if (!file_.ok()) {
      const int error = errno;
      temporary_.clear();
      return Failed(error, "create a file beside", path_);
    }
    // mkostemp gives a file to its owner alone.
    if (fchmod(file_.get(), 0644) != 0) return Failed(errno, "set the mode of", path_);
    return absl::OkStatus();
  }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    while (status_.ok() && !bytes.empty()) {
      const ssize_t count = write(file_.get(), bytes.data(), bytes.size());
      if (count >= 0) bytes.remove_prefix(static_cast<size_t>(count));
      if (count < 0 && errno != EINTR) status_ = Failed(errno, "write", path_);
    }
    return status_;
  }

  absl::StatusOr<Object> Close() override {
    HETERO_RETURN_IF_ERROR(Sync());
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return Failed(errno, "write", path_);
    temporary_.clear();
    return Written();
  }

  // In the place of Close(): only where there is none.
  absl::StatusOr<Object> CloseIfAbsent() {
    HETERO_RETURN_IF_ERROR(Sync());
    if (link(temporary_.c_str(), path_.c_str()) != 0) return Failed(errno, "write", path_);
    return Written();
  }

  // Later than `old`, however coarse the file system's clock is: two versions must differ.
  absl::Status ChangeAfter(const struct stat& old) {
    struct stat info;
    if (fstat(file_.get(), &info) != 0) return Failed(errno, "write", path_);
    timespec later = old.st_mtim;
    if (++later.tv_nsec == 1'000'000'000) later = {.tv_sec = later.tv_sec + 1, .tv_nsec = 0};
    if (std::pair(info.st_mtim.tv_sec, info.st_mtim.tv_nsec) >=
        std::pair(later.tv_sec, later.tv_nsec)) {
      return absl::OkStatus();
    }
    const timespec times[2] = {later, later};
    if (futimens(file_.get(), times) != 0) return Failed(errno, "write", path_);
    return absl::OkStatus();
  }

 private:
  absl::Status Sync() {
    HETERO_RETURN_IF_ERROR(status_);
    if (fsync(file_.get()) != 0) status_ = Failed(errno, "sync", path_);
    return status_;
  }

  absl::StatusOr<Object> Written() {
    struct stat info;
    if (fstat(file_.get(), &info) != 0) return Failed(errno, "write", path_);
    if (file_.Close() != 0) return Failed(errno, "close", path_);
    HETERO_RETURN_IF_ERROR(base::SyncFolder(path_.substr(0, path_.rfind('/') + 1)));
    return Object{name_, info.st_size, FileVersion(info)};
  }

  const std::string name_;
  const std::string path_;
  const std::string root_;
  std::string temporary_;  // empty: there is none
  FileDescriptor file_;
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<PartialFile>> Open(const std::string& root, std::string name) {
  auto file = std::make_unique<PartialFile>(root, std::move(name));
  HETERO_RETURN_IF_ERROR(file->Open());
  return file;
}

absl::StatusOr<std::unique_ptr<PartialFile>> Fill(const std::string& root, std::string name,
                                                  std::string_view bytes) {
  if (bytes.size() > kMostConditionalBytes) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write file://", root, "/", name, ": ",
                                                   bytes.size(), " bytes at once, at most ",
                                                   kMostConditionalBytes));
  }
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<PartialFile> file, Open(root, std::move(name)));
  HETERO_RETURN_IF_ERROR(
      file->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  return file;
}

// Whoever holds it only compares and renames.
absl::Status Lock(const FileDescriptor& file, const std::string& path) {
  base::Clock& clock = base::Clock::Real();
  const base::Instant end = clock.Now() + std::chrono::seconds(10);
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return Failed(errno, "lock", path);
    if (clock.Now() > end) {
      return absl::UnavailableError(
          absl::StrCat("cannot lock file://", path, ": somebody has held its lock for 10 s"));
    }
    clock.SleepFor(std::chrono::milliseconds(2));
  }
  return absl::OkStatus();
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectWriter>> CreateFileWriter(const std::string& root,
                                                               std::string name) {
  return Open(root, std::move(name));
}

absl::StatusOr<Object> WriteFileIfAbsent(const std::string& root, std::string name,
                                         std::string_view bytes) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<PartialFile> file,
                          Fill(root, std::move(name), bytes));
  return file->CloseIfAbsent();
}

absl::StatusOr<Object> WriteFileIfMatch(const std::string& root, const Object& old,
                                        std::string_view bytes) {
  const std::string path = absl::StrCat(root, "/", old.name);
  const auto changed = [&](std::string_view how) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot replace file://", path, ": ", std::string(how)));
  };
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<PartialFile> file, Fill(root, old.name, bytes));
  // NFS locks only what is open for writing.
  const FileDescriptor held(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!held.ok()) return errno == ENOENT ? changed("it is gone") : Failed(errno, "replace", path);
  HETERO_RETURN_IF_ERROR(Lock(held, path));
  struct stat locked, named;
  if (fstat(held.get(), &locked) != 0) return Failed(errno, "replace", path);
  if (stat(path.c_str(), &named) != 0) {
    return errno == ENOENT ? changed("it is gone") : Failed(errno, "replace", path);
  }
  if (!IsSameFile(locked, named)) return changed("another writer was first");
  if (named.st_size != old.size || FileVersion(named) != old.version) {
    return changed("it was changed");
  }
  HETERO_RETURN_IF_ERROR(file->ChangeAfter(named));
  return file->Close();
}

}  // namespace hetero::storage
