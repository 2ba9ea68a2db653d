#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hetero::local {

// A private folder for unix sockets, removed at the end; short, because a socket's path has at most
// 107 characters.
class SocketFolder {
 public:
  static absl::StatusOr<SocketFolder> Create();
  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const { return path_; }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

}  // namespace hetero::local
