#include "runtime/storage/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/status_macros.h"
#include "runtime/storage/file_descriptor.h"
#include "runtime/storage/file_listing.h"
#include "runtime/storage/file_writer.h"
#include "runtime/storage/object_name.h"

namespace hetero::storage {
namespace {

class FileStore : public WritableStore {
 public:
  explicit FileStore(std::string root)
      : root_(root == "/" ? "" : std::move(root)), uri_("file://" + root_) {}

  const std::string& uri() const override { return uri_; }

  absl::StatusOr<std::vector<Object>> List(std::string_view prefix) const override {
    HETERO_RETURN_IF_ERROR(CheckPrefix(uri_, prefix));
    return ListFiles(root_, prefix);
  }

  absl::StatusOr<Object> Head(std::string_view name) const override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    struct stat info;
    if (stat(Path(name).c_str(), &info) != 0) return Failed(errno, "find", name);
    if (!S_ISREG(info.st_mode)) {
      return absl::NotFoundError(absl::StrCat("cannot find ", Uri(name), ": it is no file"));
    }
    return Object{std::string(name), info.st_size, FileVersion(info)};
  }

  absl::Status Read(const Object& object, int64_t offset, absl::Span<uint8_t> out) const override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, object.name));
    HETERO_RETURN_IF_ERROR(CheckRange(uri_, object, offset, out.size()));
    // A pipe in the file's place would keep open() waiting.
    const FileDescriptor file(open(Path(object.name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.ok()) return Failed(errno, "read", object.name);
    HETERO_RETURN_IF_ERROR(CheckUnchanged(file, object));
    if (ReadAt(file.get(), offset, out.data(), out.size()) < 0) {
      return Failed(errno, "read", object.name);
    }
    // Where it is shorter now, this finds it.
    return CheckUnchanged(file, object);
  }

  absl::StatusOr<std::unique_ptr<ObjectWriter>> Create(std::string_view name) override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    return CreateFileWriter(root_, std::string(name));
  }
  absl::StatusOr<Object> WriteIfAbsent(std::string_view name, std::string_view bytes) override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    return WriteFileIfAbsent(root_, std::string(name), bytes);
  }
  absl::StatusOr<Object> WriteIfMatch(const Object& old, std::string_view bytes) override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, old.name));
    return WriteFileIfMatch(root_, old, bytes);
  }

  absl::Status Delete(std::string_view name) override {
    HETERO_RETURN_IF_ERROR(CheckName(uri_, name));
    const std::string path = Path(name);
    if (unlink(path.c_str()) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
      return Failed(errno, "delete", name);
    }
    return base::SyncFolder(path.substr(0, path.rfind('/') + 1));
  }

 private:
  std::string Path(std::string_view name) const {
    return absl::StrCat(root_, "/", absl::string_view(name.data(), name.size()));
  }
  std::string Uri(std::string_view name) const { return "file://" + Path(name); }

  absl::Status Failed(int error, std::string_view action, std::string_view name) const {
    const std::string message = absl::StrCat("cannot ", std::string(action), " ", Uri(name));
    // A file where a folder should be is no file of this name either.
    if (error == ENOTDIR || error == ENAMETOOLONG || error == ELOOP) {
      return absl::NotFoundError(absl::ErrnoToStatus(error, message).message());
    }
    return absl::ErrnoToStatus(error, message);
  }

  absl::Status CheckUnchanged(const FileDescriptor& file, const Object& object) const {
    struct stat info;
    if (fstat(file.get(), &info) != 0) return Failed(errno, "read", object.name);
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot read ", Uri(object.name), ": it is no file any more"));
    }
    if (info.st_size == object.size &&
        (object.version.empty() || FileVersion(info) == object.version)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot read ", Uri(object.name), ": it was changed: it had ", object.size,
        " bytes, last changed at ", object.version, ", and has ", info.st_size,
        ", last changed at ", FileVersion(info), "; put the file back or start a new job"));
  }

  const std::string root_;  // "" for "/"
  const std::string uri_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableStore>> OpenFileStore(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is no absolute path; write file:///folder/..."));
  }
  std::string root = path;
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  struct stat info;
  if (stat(root.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open file://", root, "; check the path and the volume"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(absl::StrCat("cannot open file://", root, ": it is no folder"));
  }
  return std::make_unique<FileStore>(std::move(root));
}

}  // namespace hetero::storage
