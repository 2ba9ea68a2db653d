#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/agent/batch_arena.h"
#include "runtime/agent/batch_layout.h"
#include "runtime/agent/passed_files.h"
#include "runtime/agent/stream_protocol.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::agent {

// Where one script finds its batches: the pictures in the file where a CPU worker has put them, or
// in a slot of the arena; all the rest always in a slot, which also stands for the batch. Not
// thread-safe.
class BatchHandover {
 public:
  struct Options {
    std::shared_ptr<BatchArena> arena;
    SampleLayout training, validation;
  };
  explicit BatchHandover(Options options) : options_(std::move(options)) {}

  struct Handed {
    std::vector<feed::Slab> slabs;                           // until the script lets go of them
    std::shared_ptr<const feed::MemoryFile> file = nullptr;  // that goes with the answer
  };
  enum class Pictures {
    kStay,       // where they are, if the script can see them there
    kIntoArena,  // all, where they are not there yet
    kCopyPart,   // of `part`; the batch keeps its own
  };
  // Says in `answer` where `part` of `batch` is found. Not while the arena is full().
  Handed Hand(const BatchPart& part, Pictures pictures, feed::Batch* batch, BatchAnswer* answer);

 private:
  const Options options_;
  PassedFiles files_;
};

}  // namespace hetero::agent
