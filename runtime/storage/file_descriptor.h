#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
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

// Reads from `offset` on until `size` bytes are there or the file ends. How many they are; -1 with
// errno set. Leaves the file's position alone, as WriteAt() does.
ssize_t ReadAt(int file, int64_t offset, void* out, size_t size);
// False with errno set: not all bytes were written.
bool WriteAt(int file, int64_t offset, const void* bytes, size_t size);

}  // namespace hetero::storage
