#include "runtime/storage/file_listing.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "runtime/storage/file_descriptor.h"
#include "runtime/storage/object_name.h"

namespace hetero::storage {
namespace {

// Each level holds a file descriptor.
constexpr size_t kMostLevels = 100;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

struct FolderId {
  dev_t device;
  ino_t inode;
  bool operator==(const FolderId&) const = default;
};

class Walk {
 public:
  Walk(const std::string& root, std::string_view prefix) : root_(root), prefix_(prefix) {}

  // The folder at `name`, which is "" or ends with "/". False in `*found`: there is none.
  absl::Status Enter(const std::string& name, bool* found) {
    const std::string path = absl::StrCat(root_, "/", name);
    const auto failed = [&](int error) {
      return absl::ErrnoToStatus(error, absl::StrCat("cannot list file://", path));
    };
    FileDescriptor file(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    *found = file.ok();
    if (!file.ok()) {
      // It went while it was listed.
      const bool gone = errno == ENOENT || errno == ENOTDIR;
      return gone ? absl::OkStatus() : failed(errno);
    }
    struct stat info;
    if (fstat(file.get(), &info) != 0) return failed(errno);
    const FolderId id{info.st_dev, info.st_ino};
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return absl::OkStatus();
    if (above_.size() == kMostLevels) {
      return absl::OutOfRangeError(
          absl::StrCat("cannot list file://", path, ": more than ", kMostLevels, " folders deep"));
    }
    const Folder folder(fdopendir(file.get()));
    if (folder == nullptr) return failed(errno);
    file.Release();
    above_.push_back(id);
    for (errno = 0; const dirent* entry = readdir(folder.get()); errno = 0) {
      HETERO_RETURN_IF_ERROR(Visit(name, *entry, dirfd(folder.get())));
    }
    if (errno != 0) return failed(errno);
    above_.pop_back();
    return absl::OkStatus();
  }

  std::vector<Object> Sorted() && {
    std::sort(objects_.begin(), objects_.end(),
              [](const Object& a, const Object& b) { return a.name < b.name; });
    return std::move(objects_);
  }

 private:
  absl::Status Visit(const std::string& folder, const dirent& entry, int fd) {
    const std::string_view last = entry.d_name;
    if (last == "." || last == "..") return absl::OkStatus();
    std::string name = absl::StrCat(folder, entry.d_name);
    // What lies below a folder that the prefix does not go through cannot begin with it.
    if (!absl::StartsWith(name, prefix_) && !absl::StartsWith(prefix_, name + "/")) {
      return absl::OkStatus();
    }
    struct stat info;
    if (fstatat(fd, entry.d_name, &info, 0) != 0) {
      if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) return absl::OkStatus();
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot list file://", root_, "/", name));
    }
    if (S_ISDIR(info.st_mode)) {
      bool found;
      return Enter(name + "/", &found);
    }
    if (!S_ISREG(info.st_mode) || !absl::StartsWith(name, prefix_) ||
        last.find(kTemporaryMark) != std::string_view::npos) {
      return absl::OkStatus();
    }
    if (objects_.size() == kMostListedObjects) {
      return absl::OutOfRangeError(absl::StrCat("cannot list file://", root_, ": more than ",
                                                kMostListedObjects,
                                                " files; put them into shards"));
    }
    objects_.push_back({std::move(name), info.st_size, FileVersion(info)});
    return absl::OkStatus();
  }

  const std::string& root_;
  const std::string prefix_;
  std::vector<FolderId> above_;  // from the root to the folder that is listed
  std::vector<Object> objects_;
};

}  // namespace

std::string FileVersion(const struct stat& info) {
  return absl::StrFormat("%d.%09d", info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

absl::StatusOr<std::vector<Object>> ListFiles(const std::string& root, std::string_view prefix) {
  Walk walk(root, prefix);
  bool found;
  HETERO_RETURN_IF_ERROR(walk.Enter("", &found));
  if (!found) {
    return absl::NotFoundError(absl::StrCat("cannot list file://", root,
                                            ": there is no such folder; check the path and the "
                                            "volume"));
  }
  return std::move(walk).Sorted();
}

}  // namespace hetero::storage
