#include "runtime/source/nameless_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::source {

absl::StatusOr<NamelessFile> NamelessFile::Create() {
  const char* given = std::getenv("TMPDIR");
  std::string folder = given == nullptr || *given == '\0' ? "/tmp" : given;
  storage::FileDescriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.ok()) return NamelessFile(std::move(folder), std::move(file));
  // Not every file system has nameless files.
  std::string path = folder + "/hetero-XXXXXX";
  file = storage::FileDescriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!file.ok()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("TMPDIR ", folder, ": cannot make a file"));
  }
  unlink(path.c_str());
  return NamelessFile(std::move(folder), std::move(file));
}

absl::Status NamelessFile::WriteAt(int64_t offset, absl::Span<const uint8_t> bytes) const {
  if (storage::WriteAt(file_.get(), offset, bytes.data(), bytes.size())) return absl::OkStatus();
  const int error = errno;
  return absl::ErrnoToStatus(
      error,
      absl::StrCat("TMPDIR ", folder_, ": cannot write",
                   error == ENOSPC || error == EDQUOT ? "; name a folder with more room" : ""));
}

absl::Status NamelessFile::ReadAt(int64_t offset, absl::Span<uint8_t> out) const {
  const ssize_t count = storage::ReadAt(file_.get(), offset, out.data(), out.size());
  if (count == static_cast<ssize_t>(out.size())) return absl::OkStatus();
  if (count < 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("TMPDIR ", folder_, ": cannot read"));
  return absl::OutOfRangeError(absl::StrCat("TMPDIR ", folder_, ": a file ends before"));
}

}  // namespace hetero::source
