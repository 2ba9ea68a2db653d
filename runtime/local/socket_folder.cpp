#include "runtime/local/socket_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::local {

absl::StatusOr<SocketFolder> SocketFolder::Create() {
  std::string path = "/tmp/hetero-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a folder in /tmp: ", strerror(errno)));
  }
  return SocketFolder(path);
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hetero::local
