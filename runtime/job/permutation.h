#pragma once

#include <cstdint>

#include "operator/api/hetero_training_job.h"

namespace hetero::job {

// The order of samples in one epoch: a keyed bijection of [0, size) computed in O(1) memory, so
// any worker finds the sample of any slot without a table or a message. Full and Block modes use
// a balanced Feistel network with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite
// domains", 2002). Block mode permutes whole blocks of `block_size` samples and then the samples
// inside each block, so that storage is read sequentially. None is the identity.
// Immutable and safe from any thread.
class Permutation {
 public:
  // `size` > 0 samples. The same (seed, epoch, size, shuffle) gives the same order everywhere.
  Permutation(uint64_t seed, int64_t epoch, int64_t size, const api::Shuffle& shuffle);

  // Sample id at `slot`, both in [0, size). A slot outside is a programming error.
  int64_t At(int64_t slot) const;

  int64_t size() const { return size_; }

 private:
  int64_t size_;
  uint64_t key_;
  api::Shuffle shuffle_;
};

}  // namespace hetero::job
