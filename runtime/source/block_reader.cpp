#include "runtime/source/block_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace hetero::source {

std::string BlockReader::where() const { return absl::StrCat(store_.uri(), "/", object_.name); }

absl::StatusOr<std::span<const uint8_t>> BlockReader::At(int64_t offset, size_t length,
                                                         const char* what) {
  if (offset > size() || length > static_cast<uint64_t>(size() - offset)) {
    return absl::DataLossError(absl::StrCat(where(), ": byte ", offset, ": ", what, " has ", length,
                                            " bytes, but the file ends after ", size(),
                                            "; it is cut short or damaged, copy it again"));
  }
  const int64_t end = begin_ + static_cast<int64_t>(block_.size());
  if (offset < begin_ || offset + static_cast<int64_t>(length) > end) {
    const size_t wanted = std::max(length, kBlockBytes);
    const size_t left = static_cast<size_t>(size() - offset);
    block_.resize(std::min(wanted, left));
    begin_ = offset;
    const absl::Status read = store_.Read(object_, offset, absl::MakeSpan(block_));
    if (!read.ok()) {
      block_.clear();
      return read;
    }
  }
  return std::span<const uint8_t>(block_).subspan(static_cast<size_t>(offset - begin_), length);
}

}  // namespace hetero::source
