#include "runtime/agent/batch_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hetero::agent {
namespace {

absl::Status NoArena(int64_t bytes, const char* call) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", bytes, " bytes of shared memory for a script's batches (", call, ": ",
                   std::strerror(errno),
                   "); is the address space limited (ulimit -v), or lower batchSizePerWorker"));
}

int64_t WholePages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

}  // namespace

absl::StatusOr<std::shared_ptr<BatchArena>> BatchArena::Create(const Options& asked) {
  Options options = asked;
  options.slot_bytes = WholePages(options.slot_bytes);
  const int64_t bytes = (options.may_wait + options.may_hold) * options.slot_bytes;
  const int fd = memfd_create("hetero-batches", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return NoArena(bytes, "memfd_create");
  // A script that cut the file shorter would end its agent.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  void* data = MAP_FAILED;
  const char* call = "ftruncate";
  if (ftruncate(fd, bytes) == 0) {
    call = "fcntl";
    if (fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
      call = "mmap";
      data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
  }
  if (data == MAP_FAILED) {
    const absl::Status status = NoArena(bytes, call);
    close(fd);
    return status;
  }
  return std::shared_ptr<BatchArena>(new BatchArena(options, fd, static_cast<uint8_t*>(data)));
}

BatchArena::BatchArena(const Options& options, int fd, uint8_t* data)
    : options_(options), fd_(fd), data_(data) {
  states_.assign(static_cast<size_t>(slots()), State::kFree);
  for (int64_t i = slots(); i > 0; --i) free_.push_back(i - 1);
}

BatchArena::~BatchArena() {
  munmap(data_, static_cast<size_t>(size()));
  close(fd_);
}

feed::Slab BatchArena::Take(State state, int64_t bytes) {
  const int64_t index = free_.back();
  free_.pop_back();
  states_[static_cast<size_t>(index)] = state;
  ++(state == State::kHeld ? held_ : waiting_);
  return feed::Slab(slot(index), bytes, shared_from_this());
}

feed::Slab BatchArena::Allocate(int64_t bytes) {
  if (bytes > 0 && bytes <= options_.image_bytes) {
    const base::MutexLock lock(mutex_);
    if (waiting_ < options_.may_wait && !free_.empty()) return Take(State::kWaits, bytes);
  }
  return feed::Slab(bytes);
}

std::optional<int64_t> BatchArena::SlotOf(const feed::Slab& slab) const {
  const uint8_t* memory = slab.data();
  if (memory < data_ || memory >= data_ + size()) return std::nullopt;
  return IndexOf(memory);
}

feed::Slab BatchArena::Give(feed::Slab slab) {
  const std::optional<int64_t> own = SlotOf(slab);
  if (!own.has_value()) return GiveCopy(slab.data(), slab.size());
  const base::MutexLock lock(mutex_);
  states_[static_cast<size_t>(*own)] = State::kHeld;
  --waiting_;
  ++held_;
  return slab;
}

feed::Slab BatchArena::GiveCopy(const uint8_t* bytes, int64_t size) {
  feed::Slab slab;
  {
    const base::MutexLock lock(mutex_);
    slab = Take(State::kHeld, size);
    ++copies_;
  }
  if (size > 0) std::memcpy(slab.data(), bytes, static_cast<size_t>(size));
  return slab;
}

feed::Slab BatchArena::GiveEmpty() {
  const base::MutexLock lock(mutex_);
  return Take(State::kHeld, 0);
}

bool BatchArena::full() const {
  const base::MutexLock lock(mutex_);
  return held_ >= options_.may_hold;
}

void BatchArena::Release(uint8_t* memory) {
  const int64_t index = IndexOf(memory);
  const base::MutexLock lock(mutex_);
  State& state = states_[static_cast<size_t>(index)];
  --(state == State::kHeld ? held_ : waiting_);
  state = State::kFree;
  free_.push_back(index);
}

int64_t BatchArena::held() const {
  const base::MutexLock lock(mutex_);
  return held_;
}

int64_t BatchArena::waiting() const {
  const base::MutexLock lock(mutex_);
  return waiting_;
}

int64_t BatchArena::copies() const {
  const base::MutexLock lock(mutex_);
  return copies_;
}

}  // namespace hetero::agent
