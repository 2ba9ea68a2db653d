#include "runtime/feed/batch.h"

#include <new>

namespace hetero::feed {
namespace {
constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vector register
}

Slab::Slab(int64_t bytes)
    : data_(static_cast<uint8_t*>(
          ::operator new[](static_cast<size_t>(bytes > 0 ? bytes : 1), kAlignment))),
      size_(bytes) {}

void Slab::Free::operator()(uint8_t* p) const { ::operator delete[](p, kAlignment); }

}  // namespace hetero::feed
