#include "runtime/feed/transport/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "hetero/v1/feed.pb.h"

namespace hetero::feed {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLargest = int64_t{16} << 30;
constexpr int kPeriod = 16;  // allocations, after which unused memory is given back
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(SharedRegion::kFlags * sizeof(uint32_t) <= SharedRegion::kHeaderBytes);
static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);  // works between processes

int64_t RoundUp(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

absl::Status Refused(const char* call) {
  return absl::ErrnoToStatus(errno, absl::StrCat("no shared memory: ", call));
}

// Beyond the limit the system would not refuse, but end the process.
absl::Status CheckFileSizeLimit(int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(bytes)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no shared memory: a region of ", bytes,
                   " bytes is over this process's file size limit of ", limit.rlim_cur));
}

// A batch that the trainer reads.
class ReadPart : public SlabOwner {
 public:
  ReadPart(std::shared_ptr<SharedRegion> region, uint32_t flag)
      : region_(std::move(region)), flag_(flag) {}
  void Release(uint8_t*) override { region_->SetTaken(flag_, false); }
  std::shared_ptr<const MemoryFile> file() const override { return region_; }

 private:
  const std::shared_ptr<SharedRegion> region_;
  const uint32_t flag_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Map(int fd, Side side) {
  std::shared_ptr<SharedRegion> region(new SharedRegion);
  region->fd_ = fd;
  struct stat status {};
  if (fstat(fd, &status) != 0) return Refused("fstat");
  // A file that can be cut shorter would end whoever reads it.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || status.st_size <= kHeaderBytes ||
      status.st_size > kLargest) {
    return absl::InvalidArgumentError("what was passed on is no shared region");
  }
  region->size_ = status.st_size;
  const auto size = static_cast<size_t>(status.st_size);
  const int batches = side == Side::kWorker ? PROT_READ | PROT_WRITE : PROT_READ;
  void* flags = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (flags == MAP_FAILED) return Refused("mmap");
  region->flags_ = static_cast<uint32_t*>(flags);
  void* data = mmap(nullptr, size, batches, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return Refused("mmap");
  region->data_ = static_cast<uint8_t*>(data);
  return region;
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
  if (flags_ != nullptr) munmap(flags_, kHeaderBytes);
  close(fd_);
}

bool SharedRegion::taken(uint32_t flag) const {
  return std::atomic_ref(flags_[flag]).load(std::memory_order_acquire) != 0;
}

void SharedRegion::SetTaken(uint32_t flag, bool taken) const {
  std::atomic_ref(flags_[flag]).store(taken ? 1 : 0, std::memory_order_release);
}

absl::StatusOr<std::shared_ptr<TrainerRegion>> TrainerRegion::Create(int64_t bytes) {
  const int64_t size = std::min(kLargest, SharedRegion::kHeaderBytes + RoundUp(bytes));
  HETERO_RETURN_IF_ERROR(CheckFileSizeLimit(size));
  const int fd = memfd_create("hetero-feed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Refused("memfd_create");
  if (ftruncate(fd, size) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    const absl::Status refused = Refused("ftruncate");
    close(fd);
    return refused;
  }
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region,
                          SharedRegion::Map(fd, SharedRegion::Side::kTrainer));
  std::random_device random;
  uint64_t token = 0;
  while (token == 0) token = uint64_t{random()} << 32 | random();
  return std::shared_ptr<TrainerRegion>(new TrainerRegion(std::move(region), token));
}

absl::StatusOr<Slab> TrainerRegion::Open(const SharedPart& part, int64_t bytes) const {
  const auto size = static_cast<uint64_t>(region_->size());
  if (part.flag >= SharedRegion::kFlags || bytes < 0 || part.offset > size ||
      part.offset < SharedRegion::kHeaderBytes ||
      static_cast<uint64_t>(bytes) > size - part.offset) {
    return absl::DataLossError(absl::StrCat("flag ", part.flag, " with ", bytes, " bytes at ",
                                            part.offset, " is outside a shared region of ", size));
  }
  return Slab(region_->data() + part.offset, bytes, std::make_shared<ReadPart>(region_, part.flag));
}

WorkerRegion::WorkerRegion(std::shared_ptr<SharedRegion> region) : region_(std::move(region)) {
  for (uint32_t flag = SharedRegion::kFlags; flag > 0; --flag) free_flags_.push_back(flag - 1);
}

std::optional<Slab> WorkerRegion::Allocate(int64_t bytes) {
  const base::MutexLock lock(mutex_);
  Reclaim();
  if (free_flags_.empty()) return std::nullopt;
  int64_t offset = SharedRegion::kHeaderBytes;
  const int64_t size = std::max(kPage, RoundUp(bytes));
  for (const auto& [begin, part] : parts_) {
    if (begin - offset >= size) break;
    offset = part.end;
  }
  const int64_t end = offset + size;
  if (end > region_->size() || !Back(end)) return std::nullopt;
  parts_[offset] = {.end = end, .flag = free_flags_.back()};
  free_flags_.pop_back();
  Trim(parts_.rbegin()->second.end);
  return Slab(region_->data() + offset, bytes, shared_from_this());
}

void WorkerRegion::Release(uint8_t* memory) {
  const base::MutexLock lock(mutex_);
  const auto it = parts_.find(memory - region_->data());
  if (it == parts_.end()) return;
  free_flags_.push_back(it->second.flag);
  parts_.erase(it);
}

bool WorkerRegion::HandOver(uint8_t* memory, v1::FrameHeader* header) {
  const base::MutexLock lock(mutex_);
  const auto it = parts_.find(memory - region_->data());
  if (it == parts_.end()) return false;
  region_->SetTaken(it->second.flag, true);
  it->second.handed_over = true;
  header->mutable_shared()->set_flag(it->second.flag);
  header->mutable_shared()->set_offset(static_cast<uint64_t>(it->first));
  return true;
}

int64_t WorkerRegion::backed_bytes() const {
  const base::MutexLock lock(mutex_);
  return backed_;
}

void WorkerRegion::Reclaim() {
  std::erase_if(parts_, [this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Part& part = entry.second;
    if (!part.handed_over || region_->taken(part.flag)) return false;
    free_flags_.push_back(part.flag);
    return true;
  });
}

// Memory is asked for before it is written: a write that finds none would end the process.
bool WorkerRegion::Back(int64_t end) {
  if (end <= backed_) return true;
  if (refused_) return false;
  if (const absl::Status limit = CheckFileSizeLimit(end); !limit.ok()) {
    errno = EFBIG;
  } else if (fallocate(region_->fd(), 0, backed_, end - backed_) == 0) {
    backed_ = end;
    return true;
  }
  log::Warning("no memory for batches in place, they are sent instead",
               {{"bytes", end - backed_}, {"error", Refused("fallocate").message()}});
  refused_ = true;
  return false;
}

// Gives back what two periods in a row have not needed.
void WorkerRegion::Trim(int64_t top) {
  peak_ = std::max(peak_, top);
  if (++allocations_ < kPeriod) return;
  const int64_t keep = std::max(peak_, last_peak_);
  if (backed_ > keep && fallocate(region_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, keep,
                                  backed_ - keep) == 0) {
    backed_ = keep;
  }
  last_peak_ = peak_;
  peak_ = top;
  allocations_ = 0;
}

}  // namespace hetero::feed
