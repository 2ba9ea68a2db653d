#pragma once

#include <cstdint>

#include "api/hetero_training_job.h"

namespace hetero::job {

// The order of samples in one epoch: a keyed bijection of [0, size) computed in O(1) memory, so
// any worker finds the sample of any slot without a table or a message.
//   Full   one Feistel permutation of all samples (feistel.h).
//   Block  sample ids are cut into blocks of `block_size`; the blocks are permuted, then the
//   samples
//          inside each block, so that storage is read block by block. When block_size does not
//          divide size, the short block of the last ids takes a keyed place among the others.
//          With a window of several blocks the slots of each window are permuted first, so that
//          samples of its blocks come mixed: the last window is as long as what is left.
//   None   the identity.
// Immutable and safe from any thread.
class Permutation {
 public:
  // 0 < size <= 2^62 samples; Block mode needs block_size > 0. The same (seed, epoch, size,
  // shuffle) gives the same order everywhere.
  Permutation(uint64_t seed, int64_t epoch, int64_t size, const api::Shuffle& shuffle);

  // Sample id at `slot`, both in [0, size). A slot outside is a programming error.
  int64_t At(int64_t slot) const;

  int64_t size() const { return size_; }

 private:
  int64_t InWindow(int64_t slot) const;
  int64_t InBlocks(int64_t slot) const;

  int64_t size_;
  uint64_t key_;
  api::Shuffle shuffle_;
  int64_t window_ = 0;             // slots that are permuted with each other; 0: none
  int64_t short_block_place_ = 0;  // full blocks that come before the short one
};

}  // namespace hetero::job
