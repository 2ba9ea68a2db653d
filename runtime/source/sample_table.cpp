#include "runtime/source/sample_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

absl::Status WrittenOver(const std::string& where) {
  return absl::FailedPreconditionError(absl::StrCat(
      where, ": was written over while it was used; start the job again with an index that stays"));
}

constexpr int64_t kBlock = 1 << 16;  // locations

absl::Status ReadFile(int file, const std::string& where, int64_t offset, void* out, size_t size) {
  const ssize_t count = storage::ReadAt(file, offset, out, size);
  if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat(where, ": cannot be read"));
  return count < static_cast<ssize_t>(size) ? WrittenOver(where) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<SampleTable::FileState> SampleTable::StateOf(int file, const std::string& where) {
  struct stat info;
  if (fstat(file, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(where, ": cannot be read"));
  }
  return FileState{info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

absl::Status SampleTable::CheckUnchanged() const {
  HETERO_ASSIGN_OR_RETURN(const FileState now, StateOf(file_->descriptor.get(), file_->where));
  return now == file_->state ? absl::OkStatus() : WrittenOver(file_->where);
}

SampleTable::SampleTable(std::vector<SampleLocation> samples)
    : size_(static_cast<int64_t>(samples.size())), samples_(std::move(samples)) {
  Take(samples_);
}

void SampleTable::Take(absl::Span<const SampleLocation> block) {
  for (const SampleLocation& location : block) {
    highest_label_ = std::max(highest_label_, location.label);
  }
  checksum_ = base::Crc32c(block.data(), block.size() * sizeof(SampleLocation), checksum_);
}

absl::StatusOr<SampleTable> SampleTable::InFile(storage::FileDescriptor file, std::string where,
                                                int64_t offset, int64_t size,
                                                const BlockCheck& check) {
  SampleTable table;
  HETERO_ASSIGN_OR_RETURN(const FileState state, StateOf(file.get(), where));
  std::vector<SampleLocation> block;
  for (int64_t first = 0; first < size; first += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, size - first)));
    HETERO_RETURN_IF_ERROR(ReadFile(file.get(), where,
                                    offset + first * int64_t{sizeof(SampleLocation)}, block.data(),
                                    block.size() * sizeof(SampleLocation)));
    HETERO_RETURN_IF_ERROR(check(first, block));
    table.Take(block);
  }
  table.size_ = size;
  table.file_ =
      std::make_unique<const File>(File{std::move(file), std::move(where), offset, state});
  HETERO_RETURN_IF_ERROR(table.CheckUnchanged());
  return table;
}

absl::StatusOr<SampleLocation> SampleTable::At(int64_t id) const {
  if (file_ == nullptr) return samples_[static_cast<size_t>(id)];
  SampleLocation location;
  HETERO_RETURN_IF_ERROR(ReadFile(file_->descriptor.get(), file_->where,
                                  file_->offset + id * int64_t{sizeof(SampleLocation)}, &location,
                                  sizeof location));
  // Behind the read, so that what was read is of that state.
  HETERO_RETURN_IF_ERROR(CheckUnchanged());
  return location;
}

}  // namespace hetero::source
