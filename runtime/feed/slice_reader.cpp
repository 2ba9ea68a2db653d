#include "runtime/feed/slice_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hetero::feed {

absl::StatusOr<SliceReader> SliceReader::Open(const grpc::ByteBuffer& buffer) {
  SliceReader reader;
  if (!buffer.Valid()) return absl::DataLossError("an empty gRPC message");
  const grpc::Status status = buffer.Dump(&reader.slices_);
  if (!status.ok()) return absl::DataLossError(status.error_message());
  for (const grpc::Slice& slice : reader.slices_) reader.left_ += slice.size();
  return reader;
}

bool SliceReader::Read(void* out, size_t size) {
  if (size > left_) return false;
  auto* to = static_cast<uint8_t*>(out);
  left_ -= size;
  while (size > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const size_t part = std::min(size, slice.size() - offset_);
    std::memcpy(to, slice.begin() + offset_, part);
    to += part;
    size -= part;
    offset_ += part;
    if (offset_ == slice.size()) {
      ++slice_;
      offset_ = 0;
    }
  }
  return true;
}

}  // namespace hetero::feed
