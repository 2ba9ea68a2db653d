#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::agent {

// The file of memory in which a script gets its batches: slots of one size, one behind the other. A
// slab in a slot is like any other: whoever has it last gives the slot back. The window's batches
// come to lie in slots, so that most are never copied; what came another way is copied into one
// when it is given to the script. A batch whose pictures the script finds in another file has a
// slot for the rest.
//
// There are as many slots as may wait and as the script may hold together. No more than may wait
// ever do, later ones lie on the heap: a script that holds fewer than it may always gets the next
// batch, whatever waits behind it. Safe from any thread.
class BatchArena : public feed::SlabOwner,
                   public feed::MemoryFile,
                   public std::enable_shared_from_this<BatchArena> {
 public:
  struct Options {
    int64_t slot_bytes = 0;  // rounded up to whole pages
    int64_t may_wait = 0;    // slots
    int64_t may_hold = 0;
    // Of these the images may take so many; labels and ids are behind them.
    int64_t image_bytes = 0;
  };
  // Takes memory only for what is written. kResourceExhausted where the system has none to map.
  static absl::StatusOr<std::shared_ptr<BatchArena>> Create(const Options& options);
  ~BatchArena() override;

  int fd() const override { return fd_; }
  int64_t size() const override { return slots() * options_.slot_bytes; }
  const uint8_t* begin() const override { return data_; }
  std::shared_ptr<const feed::MemoryFile> file() const override { return shared_from_this(); }

  int64_t slots() const { return options_.may_wait + options_.may_hold; }
  int64_t slot_bytes() const { return options_.slot_bytes; }
  int64_t may_hold() const { return options_.may_hold; }
  uint8_t* slot(int64_t index) const { return data_ + index * options_.slot_bytes; }

  // For a batch that will wait: a slot, or the heap while enough wait, or where it does not fit.
  feed::Slab Allocate(int64_t bytes);
  // The slot in which `slab` begins; absent elsewhere.
  std::optional<int64_t> SlotOf(const feed::Slab& slab) const;
  // Whether the script holds all it may.
  bool full() const;
  // Makes the slot of `slab` one that the script holds, a free one with a copy of its bytes where
  // it lies in none. Not while it is full().
  feed::Slab Give(feed::Slab slab);
  feed::Slab GiveCopy(const uint8_t* bytes, int64_t size);
  feed::Slab GiveEmpty();  // without pictures

  int64_t held() const;
  int64_t waiting() const;
  int64_t copies() const;  // batches that were copied to be given

  void Release(uint8_t* memory) override;

 private:
  enum class State { kFree, kWaits, kHeld };

  BatchArena(const Options& options, int fd, uint8_t* data);
  int64_t IndexOf(const uint8_t* memory) const { return (memory - data_) / options_.slot_bytes; }
  feed::Slab Take(State state, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const int fd_;
  uint8_t* const data_;
  mutable base::Mutex mutex_;
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> free_ ABSL_GUARDED_BY(mutex_);  // the last is the next: its pages are warm
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t copies_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hetero::agent
