#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hetero::local {

// A private folder for unix sockets, removed at the end; short, because a socket's path has at most
// 107 characters. A process that is killed leaves it behind, and the next one of the same user
// removes it: it holds a file `lock`, locked while its process lives.
class SocketFolder {
 public:
  // `parent`/hetero-XXXXXX. Removes what dead processes left in `parent` first.
  static absl::StatusOr<SocketFolder> Create(const std::string& parent = "/tmp");
  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }

 private:
  SocketFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;  // empty: moved from
  int lock_;          // open file; not inherited by children
};

}  // namespace hetero::local
