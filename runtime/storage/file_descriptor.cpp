#include "runtime/storage/file_descriptor.h"

#include <cerrno>

namespace hetero::storage {

ssize_t ReadAt(int file, int64_t offset, void* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = pread(file, static_cast<char*>(out) + done, size - done,
                                offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

bool WriteAt(int file, int64_t offset, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = pwrite(file, static_cast<const char*>(bytes) + done, size - done,
                                 offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace hetero::storage
