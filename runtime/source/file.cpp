#include "runtime/source/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

absl::Status Failed(const std::string& path, const char* action) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot ", action));
}

}  // namespace

absl::Status ReadFile(const std::string& path, int64_t limit, std::vector<uint8_t>* bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failed(path, "open");
  const auto closer = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0) return Failed(path, "examine");
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  if (info.st_size > limit) {
    return absl::DataLossError(absl::StrCat(path, ": ", info.st_size, " bytes; files of more than ",
                                            limit, " bytes are not read"));
  }
  bytes->resize(static_cast<size_t>(info.st_size));
  size_t filled = 0;
  while (filled < bytes->size()) {
    const ssize_t count = read(file, bytes->data() + filled, bytes->size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed(path, "read");
    if (count == 0) {
      return absl::UnavailableError(absl::StrCat(path, ": shrank from ", bytes->size(), " to ",
                                                 filled, " bytes while being read"));
    }
    filled += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, std::span<const uint8_t> bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return Failed(path, "create");
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const absl::Status status = Failed(path, "write");
      close(file);
      return status;
    }
    written += static_cast<size_t>(count);
  }
  // Network file systems report a full disk only here.
  if (close(file) != 0) return Failed(path, "finish writing");
  return absl::OkStatus();
}

std::string FirstBytes(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return "nothing";
  std::string text;
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
    absl::StrAppend(&text, text.empty() ? "" : " ", absl::Hex(byte, absl::kZeroPad2));
  }
  return text;
}

}  // namespace hetero::source
