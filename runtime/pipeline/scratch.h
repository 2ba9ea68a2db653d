#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// Memory that a thread keeps from one sample to the next, so that a steady stream of samples
// allocates nothing, and a single picture of 50 million pixels does not stay with each thread.
namespace hetero::pipeline {

// What the last samples of one thread needed.
class RecentNeeds {
 public:
  // However small the samples are. Less would not go back to the kernel when it is freed
  // (feed/heap.h).
  static constexpr size_t kAlwaysKept = 16 << 20;
  static constexpr size_t kRemembered = 8;  // samples

  // Bytes that a buffer may keep after a sample that needed `needed`: twice what one of those
  // before it needed.
  size_t Limit(size_t needed);

 private:
  std::array<size_t, kRemembered> needs_{};
  size_t next_ = 0;
};

// The buffers of one thread, to be declared beside each other as `static thread_local`:
//   static thread_local std::vector<uint8_t> rows;
//   static thread_local const KeptBuffer kept(&rows);
class KeptBuffer {
 public:
  explicit KeptBuffer(std::vector<uint8_t>* buffer);
  ~KeptBuffer();
  KeptBuffer(const KeptBuffer&) = delete;
  KeptBuffer& operator=(const KeptBuffer&) = delete;

 private:
  std::vector<uint8_t>* const buffer_;
};

// The sample at hand needs a picture of so many bytes.
void NeedsScratch(int64_t bytes);
// The sample at hand is done, or has failed: gives back what this thread's buffers have beyond
// their limit. Their contents are lost.
void EndScratch();
// Of all buffers of this thread.
size_t ScratchBytes();

}  // namespace hetero::pipeline
