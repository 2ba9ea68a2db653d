#include "runtime/pipeline/scratch.h"

#include <algorithm>

namespace hetero::pipeline {
namespace {

struct ThreadScratch {
  std::vector<std::vector<uint8_t>*> buffers;
  RecentNeeds needs;
  size_t needed = 0;  // by the sample at hand
};

ThreadScratch& OfThisThread() {
  static thread_local ThreadScratch scratch;
  return scratch;
}

}  // namespace

size_t RecentNeeds::Limit(size_t needed) {
  const size_t most = *std::max_element(needs_.begin(), needs_.end());
  needs_[next_] = needed;
  next_ = (next_ + 1) % kRemembered;
  return std::max(kAlwaysKept, 2 * most);
}

KeptBuffer::KeptBuffer(std::vector<uint8_t>* buffer) : buffer_(buffer) {
  OfThisThread().buffers.push_back(buffer);
}

KeptBuffer::~KeptBuffer() { std::erase(OfThisThread().buffers, buffer_); }

void NeedsScratch(int64_t bytes) {
  size_t& needed = OfThisThread().needed;
  needed = std::max(needed, static_cast<size_t>(bytes));
}

void EndScratch() {
  ThreadScratch& scratch = OfThisThread();
  const size_t limit = scratch.needs.Limit(scratch.needed);
  scratch.needed = 0;
  for (std::vector<uint8_t>* buffer : scratch.buffers) {
    if (buffer->capacity() > limit) *buffer = std::vector<uint8_t>();
  }
}

size_t ScratchBytes() {
  size_t bytes = 0;
  for (const std::vector<uint8_t>* buffer : OfThisThread().buffers) bytes += buffer->capacity();
  return bytes;
}

}  // namespace hetero::pipeline
