#include "runtime/feed/heap.h"

#include <malloc.h>

#include <mutex>

namespace hetero::feed {
namespace {

constexpr int kOwnMapping = 16 << 20;  // bytes, from which on an allocation is no part of the heap
constexpr int kKeptAtTheTop = 32 << 20;  // bytes

}  // namespace

void KeepFreedMemory() {
  static std::once_flag once;
  std::call_once(once, [] {
    mallopt(M_MMAP_THRESHOLD, kOwnMapping);
    mallopt(M_TRIM_THRESHOLD, kKeptAtTheTop);
  });
}

}  // namespace hetero::feed
