#include "runtime/feed/wire/slice_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hetero::feed {

absl::StatusOr<SliceReader> SliceReader::Open(const grpc::ByteBuffer& buffer) {
  SliceReader reader;
  if (!buffer.Valid()) return absl::DataLossError("an empty gRPC message");
  const grpc::Status status = buffer.Dump(&reader.slices_);
  if (!status.ok()) return absl::DataLossError(status.error_message());
  for (const grpc::Slice& slice : reader.slices_) reader.left_ += slice.size();
  return reader;
}

absl::Status SliceReader::Read(void* out, size_t size) {
  if (size > left_) {
    return absl::DataLossError(absl::StrCat("a message ends ", size - left_,
                                            " bytes too early: ", size, " were expected"));
  }
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
  return absl::OkStatus();
}

}  // namespace hetero::feed
