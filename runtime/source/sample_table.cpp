#include "runtime/source/sample_table.h"

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

constexpr int64_t kBlock = 1 << 16;  // locations

absl::Status ReadFile(int file, const std::string& where, int64_t offset, void* out, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = pread(file, static_cast<char*>(out) + done, size - done,
                                offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat(where, ": cannot be read"));
    if (count == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          where, ": byte ", offset + static_cast<int64_t>(done),
          ": the file ends here now; was it written over while it was used? Make the index again"));
    }
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace

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
  table.file_ = std::make_unique<const File>(File{std::move(file), std::move(where), offset});
  return table;
}

absl::StatusOr<SampleLocation> SampleTable::At(int64_t id) const {
  if (file_ == nullptr) return samples_[static_cast<size_t>(id)];
  SampleLocation location;
  HETERO_RETURN_IF_ERROR(ReadFile(file_->descriptor.get(), file_->where,
                                  file_->offset + id * int64_t{sizeof(SampleLocation)}, &location,
                                  sizeof location));
  return location;
}

}  // namespace hetero::source
