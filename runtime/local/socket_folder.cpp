#include "runtime/local/socket_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hetero::local {
namespace {

constexpr char kPrefix[] = "hetero-";
constexpr size_t kRandomCharacters = 6;

absl::Status CannotCreate(const std::string& parent) {
  return absl::UnavailableError(
      absl::StrCat("cannot create a folder in ", parent, ": ", strerror(errno)));
}

bool IsOwnFolder(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid();
}

bool IsLeftBehind(const std::string& folder) {
  if (!IsOwnFolder(folder)) return false;
  const int lock = open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return false;
  const bool free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return free;
}

void RemoveLeftBehind(const std::string& parent) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entry(parent, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (absl::StartsWith(name, kPrefix) && name.size() == strlen(kPrefix) + kRandomCharacters) {
      found.push_back(entry->path());
    }
  }
  for (const std::string& folder : found) {
    if (IsLeftBehind(folder)) std::filesystem::remove_all(folder, ignored);
  }
}

// Gets its name when it is locked: an unlocked `lock` is one of a dead process.
int Lock(const std::string& folder) {
  const std::string unlocked = folder + "/new-lock";
  const int lock = open(unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock < 0) return -1;
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 &&
      rename(unlocked.c_str(), (folder + "/lock").c_str()) == 0) {
    return lock;
  }
  close(lock);
  return -1;
}

}  // namespace

absl::StatusOr<SocketFolder> SocketFolder::Create(const std::string& parent) {
  RemoveLeftBehind(parent);
  std::string path = absl::StrCat(parent, "/", kPrefix, std::string(kRandomCharacters, 'X'));
  if (mkdtemp(path.data()) == nullptr) return CannotCreate(parent);
  SocketFolder folder(path, Lock(path));
  if (folder.lock_ < 0) return CannotCreate(parent);
  return folder;
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace hetero::local
