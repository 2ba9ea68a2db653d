#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/feed/wire/batch.h"

// Memory that a trainer and a CPU worker of one host share, so that a batch is written once, by the
// worker, and read there by the trainer. The trainer makes it and passes it on (region_socket.h);
// one region per stream. It begins with flags, one for each batch in it; batches are behind. The
// worker alone decides what lies where, and puts nothing new in a place before the trainer has
// cleared the place's flag: a trainer may keep a batch for as long as it likes, whatever becomes of
// the worker.
namespace hetero::feed {

// Where a batch lies in a region.
struct SharedPart {
  uint32_t flag = 0;    // index of its flag
  uint64_t offset = 0;  // bytes from the start of the region
};

// A region as one process sees it. Immutable but for its bytes.
class SharedRegion : public MemoryFile {
 public:
  static constexpr uint32_t kFlags = 1024;  // batches at a time
  static constexpr int64_t kHeaderBytes = 4096;

  // The worker writes batches, the trainer only reads them.
  enum class Side { kTrainer, kWorker };

  // Takes `fd` over, in any case. kInvalidArgument when it is no region or could still be cut
  // shorter; otherwise the system's refusal.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Map(int fd, Side side);
  ~SharedRegion() override;
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  int fd() const override { return fd_; }
  int64_t size() const override { return size_; }
  const uint8_t* begin() const override { return data_; }
  uint8_t* data() const { return data_; }
  // Whether the trainer has the batch of `flag`.
  bool taken(uint32_t flag) const;
  void SetTaken(uint32_t flag, bool taken) const;

 private:
  SharedRegion() = default;

  int fd_ = -1;
  int64_t size_ = 0;
  uint8_t* data_ = nullptr;
  uint32_t* flags_ = nullptr;
};

// The trainer's side of one stream's region. Safe from any thread.
class TrainerRegion {
 public:
  // At least `bytes` for batches; of the machine's memory it takes only what a worker writes.
  static absl::StatusOr<std::shared_ptr<TrainerRegion>> Create(int64_t bytes);

  uint64_t token() const { return token_; }  // random: who knows it may write
  int fd() const { return region_->fd(); }
  int64_t size() const { return region_->size(); }
  // The batch at `part`, to be read in place. The region lives as long as any of its slabs.
  // kDataLoss when `part` is not inside.
  absl::StatusOr<Slab> Open(const SharedPart& part, int64_t bytes) const;

 private:
  TrainerRegion(std::shared_ptr<SharedRegion> region, uint64_t token)
      : region_(std::move(region)), token_(token) {}

  const std::shared_ptr<SharedRegion> region_;
  const uint64_t token_;
};

// The worker's side. Slabs keep it alive. Safe from any thread.
class WorkerRegion : public SlabOwner, public std::enable_shared_from_this<WorkerRegion> {
 public:
  explicit WorkerRegion(std::shared_ptr<SharedRegion> region);

  // The lowest free place; absent when there is none, or the machine has no memory for it.
  std::optional<Slab> Allocate(int64_t bytes);

  void Release(uint8_t* memory) override;
  bool HandOver(uint8_t* memory, v1::FrameHeader* header) override;

  int64_t backed_bytes() const;  // of the machine's memory

 private:
  struct Part {
    int64_t end = 0;
    uint32_t flag = 0;
    bool handed_over = false;
  };

  void Reclaim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Back(int64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim(int64_t top) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<SharedRegion> region_;
  mutable base::Mutex mutex_;
  std::map<int64_t, Part> parts_ ABSL_GUARDED_BY(mutex_);  // by offset
  std::vector<uint32_t> free_flags_ ABSL_GUARDED_BY(mutex_);
  // End of what has memory.
  int64_t backed_ ABSL_GUARDED_BY(mutex_) = SharedRegion::kHeaderBytes;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;  // the machine had none
  // Highest end in use, of this and the last period.
  int64_t peak_ ABSL_GUARDED_BY(mutex_) = 0, last_peak_ ABSL_GUARDED_BY(mutex_) = 0;
  int allocations_ ABSL_GUARDED_BY(mutex_) = 0;  // of this period
};

}  // namespace hetero::feed
