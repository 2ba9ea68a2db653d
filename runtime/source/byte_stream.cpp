#include "runtime/source/byte_stream.h"

#include <algorithm>

#include "absl/status/statusor.h"

namespace hetero::source {

ByteStream::ByteStream(const storage::Store& store, const storage::Object& object)
    : reader_(store, object) {
  Peek();
  if (block_.size() >= 3 && block_[0] == 0xef && block_[1] == 0xbb && block_[2] == 0xbf) next_ = 3;
}

bool ByteStream::Fill() {
  begin_ += static_cast<int64_t>(block_.size());
  block_ = {};
  next_ = 0;
  if (!status_.ok() || begin_ >= reader_.size()) return false;
  const auto left = static_cast<uint64_t>(reader_.size() - begin_);
  const absl::StatusOr<std::span<const uint8_t>> block = reader_.At(
      begin_, static_cast<size_t>(std::min<uint64_t>(left, BlockReader::kBlockBytes)), "a block");
  if (block.ok()) {
    block_ = *block;
  } else {
    status_ = block.status();
  }
  return block.ok();
}

}  // namespace hetero::source
