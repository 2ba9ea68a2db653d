#include "runtime/local/output_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace hetero::local {

absl::StatusOr<OutputLock> OutputLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kName);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  OutputLock lock(file);
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(absl::StrCat(
      "output folder ", folder,
      " is in use by another job that still runs; choose another with --output, or wait for it"));
}

OutputLock::~OutputLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace hetero::local
