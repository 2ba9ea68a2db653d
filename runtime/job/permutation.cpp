#include "runtime/job/permutation.h"

#include <algorithm>

#include "runtime/job/feistel.h"
#include "runtime/job/mix.h"

namespace hetero::job {
namespace {

// Keeps this use of the seed apart from every other one.
constexpr uint64_t kPurpose = 0x7065726D75746174;  // "permutat"

enum KeyPart : uint64_t { kBlockOrder = 1, kShortBlockPlace = 2, kInsideBlock = 3, kWindow = 4 };

}  // namespace

Permutation::Permutation(uint64_t seed, int64_t epoch, int64_t size, const api::Shuffle& shuffle)
    : size_(size),
      key_(HashWords(seed, {kPurpose, static_cast<uint64_t>(epoch)})),
      shuffle_(shuffle) {
  if (shuffle_.mode != api::ShuffleMode::kBlock) return;
  if (const int64_t blocks = shuffle_.window.value_or(1); blocks > 1) {
    // A window of more than all samples is one of all.
    window_ = blocks > size_ / shuffle_.block_size ? size_ : blocks * shuffle_.block_size;
  }
  const uint64_t places = static_cast<uint64_t>(size_ / shuffle_.block_size) + 1;
  short_block_place_ = static_cast<int64_t>(HashWords(key_, {kShortBlockPlace}) % places);
}

int64_t Permutation::At(int64_t slot) const {
  switch (shuffle_.mode) {
    case api::ShuffleMode::kFull:
      return static_cast<int64_t>(FeistelPermute(key_, size_, slot));
    case api::ShuffleMode::kBlock:
      return InBlocks(window_ == 0 ? slot : InWindow(slot));
    case api::ShuffleMode::kNone:
      return slot;
  }
  __builtin_unreachable();
}

int64_t Permutation::InWindow(int64_t slot) const {
  const int64_t window = slot / window_;
  const int64_t first = window * window_;
  const uint64_t window_key = HashWords(key_, {kWindow, static_cast<uint64_t>(window)});
  return first + static_cast<int64_t>(
                     FeistelPermute(window_key, std::min(window_, size_ - first), slot - first));
}

int64_t Permutation::InBlocks(int64_t slot) const {
  const int64_t full = shuffle_.block_size;
  const int64_t full_blocks = size_ / full;
  const int64_t rest = size_ % full;
  const int64_t short_first = short_block_place_ * full;

  int64_t block, length, inside;
  if (slot >= short_first && slot < short_first + rest) {
    block = full_blocks;
    length = rest;
    inside = slot - short_first;
  } else {
    const int64_t among_full = slot < short_first ? slot : slot - rest;
    block = FeistelPermute(HashWords(key_, {kBlockOrder}), full_blocks, among_full / full);
    length = full;
    inside = among_full % full;
  }
  const uint64_t block_key = HashWords(key_, {kInsideBlock, static_cast<uint64_t>(block)});
  return block * full + static_cast<int64_t>(FeistelPermute(block_key, length, inside));
}

}  // namespace hetero::job
