#include "runtime/source/picture_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "runtime/source/in_parallel.h"

namespace hetero::source {
namespace {

absl::Status Failed(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot list"));
}

absl::Status NoFile(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has a picture's name, but is no file; move it out of the folder or rename it"));
}

absl::Status LeadsBack(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is by a link in itself (too many levels of symbolic links); remove the link"));
}

// Of an entry that could not be looked at.
absl::Status CannotFollow(const std::string& path, int error) {
  if (error == ELOOP) return LeadsBack(path);
  return absl::ErrnoToStatus(
      error, absl::StrCat(path,
                          ": cannot be looked at; make it readable, or remove it where it is "
                          "a link that leads nowhere"));
}

bool LeadsNowhere(int error) { return error == ENOENT || error == ENOTDIR; }

std::string Below(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (!path.empty()) path += '/';
  path += name;
  return path;
}

// A folder that is being read.
class OpenFolder {
 public:
  static absl::StatusOr<OpenFolder> Open(const std::string& path) {
    OpenFolder folder(opendir(path.c_str()));
    if (folder.entries_ == nullptr) return Failed(path, errno);
    return folder;
  }

  // The next entry, until the next call; null at the end, and with an error().
  const dirent* Next() {
    while (true) {
      errno = 0;
      const dirent* entry = readdir(entries_.get());  // no other thread has this folder
      error_ = errno;
      if (entry == nullptr) return nullptr;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") return entry;
    }
  }
  int error() const { return error_; }
  int descriptor() const { return dirfd(entries_.get()); }

  // What an entry is, a file type of stat(); 0 and an errno where it leads nowhere. Most folders
  // tell what is no link.
  mode_t TypeOf(const dirent& entry, int* error) const {
    *error = 0;
    if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return DTTOIF(entry.d_type);
    struct stat status;
    if (fstatat(descriptor(), entry.d_name, &status, 0) == 0) return status.st_mode & S_IFMT;
    *error = errno;
    return 0;
  }
  bool IsLink(const dirent& entry) const {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_LNK;
    struct stat status;
    return fstatat(descriptor(), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(status.st_mode);
  }

 private:
  struct Close {
    void operator()(DIR* entries) const { closedir(entries); }
  };

  explicit OpenFolder(DIR* entries) : entries_(entries) {}

  std::unique_ptr<DIR, Close> entries_;
  int error_ = 0;
};

// The bytes of `name` in an open folder, for which `path` stands in messages.
absl::StatusOr<uint64_t> SizeIn(int folder, const std::string& path, const std::string& name) {
  struct stat status;
  if (fstatat(folder, name.c_str(), &status, 0) != 0) return CannotFollow(Below(path, name), errno);
  if (!S_ISREG(status.st_mode)) return NoFile(Below(path, name));
  return static_cast<uint64_t>(status.st_size);
}

// A folder and those above it, as the system knows them.
struct Known {
  dev_t device = 0;
  ino_t inode = 0;
  std::shared_ptr<const Known> above;
};

struct Folder {
  std::string path;  // as PictureFolder::path
  size_t of_class = 0;
  std::shared_ptr<const Known> above;
  bool by_link = false;  // it, or one above it
};

// Of a folder: its pictures' names as they come, and what else is there.
struct Entries {
  ShortTexts names;
  std::vector<Folder> folders;
  int64_t ignored = 0;
};

bool InOrder(const Folder& a, const Folder& b) {
  return a.of_class != b.of_class ? a.of_class < b.of_class : a.path < b.path;
}

class Walk {
 public:
  Walk(const std::string& root, int64_t most_sizes, PictureListing* listing)
      : root_(root), most_sizes_(most_sizes), listing_(listing) {}

  // Level by level: what is below a folder is known when that was read.
  absl::Status Run(std::vector<Folder> level) {
    while (!level.empty()) {
      // So that of several errors it is always the same one.
      std::sort(level.begin(), level.end(), InOrder);
      folders_ += static_cast<int64_t>(level.size());
      HETERO_RETURN_IF_ERROR(InParallel(level.size(), [&](size_t i) { return List(level[i]); }));
      const base::MutexLock lock(mutex_);
      level = std::exchange(next_, {});
    }
    const base::MutexLock lock(mutex_);
    for (PictureClass& one : listing_->classes) {
      std::sort(one.folders.begin(), one.folders.end(),
                [](const PictureFolder& a, const PictureFolder& b) { return a.path < b.path; });
    }
    return absl::OkStatus();
  }

 private:
  // Whether the sizes of a folder with so many pictures are still looked at: that is quickest when
  // the folder was just read, and in vain when there turn out to be too many.
  bool MayCount(int64_t pictures) {
    constexpr int64_t kFoldersThatTell = 64, kPicturesThatTell = 100'000;
    pictures_ += pictures;
    const int64_t read = ++read_;
    if (pictures_ > most_sizes_) return false;
    const bool few = read < kFoldersThatTell && pictures_ < kPicturesThatTell;
    return few || pictures_ / read * folders_ <= 2 * most_sizes_;
  }

  absl::Status List(const Folder& folder) {
    const std::string path = folder.path.empty() ? root_ : absl::StrCat(root_, "/", folder.path);
    HETERO_ASSIGN_OR_RETURN(OpenFolder open, OpenFolder::Open(path));
    Entries entries;
    HETERO_RETURN_IF_ERROR(Read(open, folder, path, &entries));
    PictureFolder pictures;
    pictures.path = folder.path;
    pictures.names = Sorted(entries.names);
    const auto count = static_cast<int64_t>(pictures.names.size());
    if (MayCount(count)) {
      pictures.sizes.reserve(pictures.names.size());
      for (size_t i = 0; i < pictures.names.size(); ++i) {
        HETERO_ASSIGN_OR_RETURN(const uint64_t size,
                                SizeIn(open.descriptor(), path, std::string(pictures.names[i])));
        pictures.sizes.push_back(size);
      }
    }
    const base::MutexLock lock(mutex_);
    listing_->ignored += entries.ignored;
    if (count > 0) listing_->classes[folder.of_class].folders.push_back(std::move(pictures));
    std::move(entries.folders.begin(), entries.folders.end(), std::back_inserter(next_));
    return absl::OkStatus();
  }

  absl::Status Read(OpenFolder& open, const Folder& folder, const std::string& path,
                    Entries* entries) const {
    HETERO_ASSIGN_OR_RETURN(const auto known, Know(open, folder, path));
    while (const dirent* entry = open.Next()) {
      const std::string_view name = entry->d_name;
      if (folder.path.empty() && IsHiddenInRoot(name)) {
        ++entries->ignored;
        continue;
      }
      const bool picture = IsPictureName(name);
      int error = 0;
      const mode_t type = open.TypeOf(*entry, &error);
      // A folder that is passed over would take its pictures with it, and nobody would know.
      if (error != 0 && (picture || !LeadsNowhere(error))) {
        return CannotFollow(Below(path, name), error);
      }
      if (S_ISDIR(type)) {
        entries->folders.push_back({Below(folder.path, name), folder.of_class, known,
                                    folder.by_link || open.IsLink(*entry)});
      } else if (!picture) {
        ++entries->ignored;
      } else if (!S_ISREG(type)) {
        return NoFile(Below(path, name));
      } else if (!entries->names.Add(name)) {
        return absl::ResourceExhaustedError(absl::StrCat(
            path, ": the names of its pictures have more than 4 GiB; put them into sub-folders"));
      }
    }
    return open.error() == 0 ? absl::OkStatus() : Failed(path, open.error());
  }

  // A way that leads back to a folder that is on it would be gone again and again, and with two
  // such links to every folder ever more often.
  static absl::StatusOr<std::shared_ptr<const Known>> Know(const OpenFolder& open,
                                                           const Folder& folder,
                                                           const std::string& path) {
    struct stat status;
    if (fstat(open.descriptor(), &status) != 0) return Failed(path, errno);
    if (folder.by_link) {
      for (const Known* one = folder.above.get(); one != nullptr; one = one->above.get()) {
        if (one->device == status.st_dev && one->inode == status.st_ino) return LeadsBack(path);
      }
    }
    return std::make_shared<const Known>(Known{status.st_dev, status.st_ino, folder.above});
  }

  const std::string& root_;
  const int64_t most_sizes_;
  int64_t folders_ = 0;  // known so far
  std::atomic<int64_t> read_ = 0;
  std::atomic<int64_t> pictures_ = 0;  // in those
  base::Mutex mutex_;
  PictureListing* const listing_ ABSL_PT_GUARDED_BY(mutex_);
  std::vector<Folder> next_ ABSL_GUARDED_BY(mutex_);  // level
};

}  // namespace

absl::StatusOr<std::vector<ClassFolder>> ListClassFolders(const std::string& root,
                                                          int64_t* ignored) {
  HETERO_ASSIGN_OR_RETURN(OpenFolder open, OpenFolder::Open(root));
  std::vector<ClassFolder> folders;
  while (const dirent* entry = open.Next()) {
    int error = 0;
    const bool folder = !IsHiddenInRoot(entry->d_name) && S_ISDIR(open.TypeOf(*entry, &error));
    // Without one of the classes all labels after it would be others.
    if (error != 0 && !LeadsNowhere(error)) return CannotFollow(Below(root, entry->d_name), error);
    if (folder) {
      folders.push_back({entry->d_name, open.IsLink(*entry)});
    } else {
      ++*ignored;
    }
  }
  if (open.error() != 0) return Failed(root, open.error());
  std::sort(folders.begin(), folders.end(),
            [](const ClassFolder& a, const ClassFolder& b) { return a.name < b.name; });
  return folders;
}

absl::Status WalkPictures(const std::string& root, const std::vector<ClassFolder>& classes,
                          int64_t most_sizes, PictureListing* listing) {
  std::vector<Folder> level;
  if (classes.size() == 1 && classes.front().name.empty()) {
    level.push_back({"", 0, nullptr, false});
  } else {
    struct stat status;
    if (stat(root.c_str(), &status) != 0) return Failed(root, errno);
    const auto above = std::make_shared<const Known>(Known{status.st_dev, status.st_ino, nullptr});
    for (size_t i = 0; i < classes.size(); ++i) {
      level.push_back({classes[i].name, i, above, classes[i].link});
    }
  }
  return Walk(root, most_sizes, listing).Run(std::move(level));
}

absl::StatusOr<uint64_t> SizeOfPicture(const std::string& path) {
  return SizeIn(AT_FDCWD, "", path);
}

}  // namespace hetero::source
