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
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = pwrite(file_.get(), bytes.data() + done, bytes.size() - done,
                                 offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("TMPDIR ", folder_, ": cannot write"));
    }
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace hetero::source
