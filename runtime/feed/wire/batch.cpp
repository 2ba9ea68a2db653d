#include "runtime/feed/wire/batch.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/crc32c.h"
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

std::shared_ptr<const MemoryFile> Slab::file() const {
  return shared() ? data_.get_deleter().owner->file() : nullptr;
}

void Slab::Leave() {
  if (!shared()) return;
  data_.release();  // NOLINT(bugprone-unused-return-value)
  data_.get_deleter().owner = nullptr;
  size_ = 0;
}

std::vector<int32_t> Batch::image_shape() const {
  std::vector<int32_t> sizes;
  if (views > 1) sizes.push_back(views);
  sizes.insert(sizes.end(), {shape.height, shape.width, shape.channels});
  return sizes;
}

int64_t Batch::tensor_bytes() const {
  int64_t bytes = images.size();
  if (!fields) return bytes;
  for (const FieldTensor& field : *fields) bytes += static_cast<int64_t>(field.bytes.size());
  return bytes;
}

void AllocateFields(const job::FieldSet& fields, Batch* batch) {
  batch->fields.reset();
  if (!fields) return;
  batch->fields.emplace();
  for (const job::FieldSpec& spec : *fields) {
    const auto bytes = static_cast<size_t>(spec.bytes() * batch->ticket.slots.count);
    batch->fields->push_back({spec, std::vector<uint8_t>(bytes)});
  }
}

uint32_t SampleCrc(const Batch& batch, int64_t index) {
  const int64_t size = batch.images.size() / batch.count();
  const uint8_t* image = batch.images.data() + index * size;
  if (!batch.fields) return base::Crc32c(image, static_cast<size_t>(size));
  uint32_t crc = 0;
  const auto add = [&crc](const std::string& heading, const uint8_t* bytes, int64_t count) {
    crc = base::Crc32c(heading.data(), heading.size(), crc);
    crc = base::Crc32c(bytes, static_cast<size_t>(count), crc);
  };
  const auto add_fields = [&](bool before_image) {
    for (const FieldTensor& field : *batch.fields) {
      if ((field.spec.name < "image") != before_image) continue;
      add(job::FieldHeading(field.spec.name, job::NameOf(field.spec.type), field.spec.shape),
          field.of(index), field.spec.bytes());
    }
  };
  add_fields(true);
  add(job::FieldHeading("image", "uint8", batch.image_shape()), image, size);
  add_fields(false);
  return crc;
}

void SlabRelease::operator()(uint8_t* memory) const {
  if (owner != nullptr) return owner->Release(memory);
  if (size >= kWorthKeeping && Spare().Keep(memory, size)) return;
  Free(memory);
}

}  // namespace hetero::feed
