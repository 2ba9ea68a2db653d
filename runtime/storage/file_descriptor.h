#pragma once

#include <unistd.h>

#include <utility>

namespace hetero::storage {

// An open file of the system's, closed at the end. Negative: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Somebody else closes it from now on.
  int Release() { return std::exchange(fd_, -1); }
  // 0, or -1 with errno set.
  int Close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 ? 0 : close(fd);
  }

 private:
  int fd_;
};

}  // namespace hetero::storage
