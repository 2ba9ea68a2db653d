#include "runtime/feed/wire/batch.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace hetero::feed {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vector register

uint8_t* Allocate(int64_t bytes) {
  return static_cast<uint8_t*>(
      ::operator new[](static_cast<size_t>(bytes > 0 ? bytes : 1), kAlignment));
}

void Free(uint8_t* memory) { ::operator delete[](memory, kAlignment); }

// Large slabs that were freed, for the next batch of the same size: fresh pages cost the kernel
// more than filling them costs us.
class SpareSlabs {
 public:
  uint8_t* Take(int64_t bytes) {
    const base::MutexLock lock(mutex_);
    const auto it = std::find_if(spare_.begin(), spare_.end(),
                                 [bytes](const auto& slab) { return slab.first == bytes; });
    if (it == spare_.end()) return nullptr;
    uint8_t* memory = it->second;
    spare_.erase(it);
    bytes_ -= bytes;
    return memory;
  }
  // False when there are enough.
  bool Keep(uint8_t* memory, int64_t bytes) {
    const base::MutexLock lock(mutex_);
    if (bytes_ + bytes > kMostBytes) return false;
    spare_.emplace_back(bytes, memory);
    bytes_ += bytes;
    return true;
  }

 private:
  static constexpr int64_t kMostBytes = int64_t{32} << 20;
  base::Mutex mutex_;
  std::vector<std::pair<int64_t, uint8_t*>> spare_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

constexpr int64_t kWorthKeeping = 16 << 10;

SpareSlabs& Spare() {
  static auto* const spare = new SpareSlabs;  // slabs may be freed while the process ends
  return *spare;
}

}  // namespace

Slab::Slab(int64_t bytes) : size_(bytes) {
  uint8_t* memory = bytes >= kWorthKeeping ? Spare().Take(bytes) : nullptr;
  data_ = {memory != nullptr ? memory : Allocate(bytes), SlabRelease{bytes, nullptr}};
}

bool Slab::HandOver(v1::FrameHeader* header) {
  if (!shared() || !data_.get_deleter().owner->HandOver(data(), header)) return false;
  // From now on the memory is the other side's to give back.
  data_.release();  // NOLINT(bugprone-unused-return-value)
  data_.get_deleter().owner = nullptr;
  size_ = 0;
  return true;
}

void SlabRelease::operator()(uint8_t* memory) const {
  if (owner != nullptr) return owner->Release(memory);
  if (size >= kWorthKeeping && Spare().Keep(memory, size)) return;
  Free(memory);
}

}  // namespace hetero::feed
