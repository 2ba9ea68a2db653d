#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/feed/wire/byte_source.h"

namespace hetero::feed {

// Reads the bytes of a gRPC message in order without joining its slices first. Not thread-safe.
class SliceReader : public ByteSource {
 public:
  // References the buffer's slices; no byte is copied. kDataLoss when gRPC cannot unpack it.
  static absl::StatusOr<SliceReader> Open(const grpc::ByteBuffer& buffer);

  size_t left() const override { return left_; }
  // kDataLoss, and nothing is read, when fewer are left.
  absl::Status Read(void* out, size_t size) override;

 private:
  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;   // current slice
  size_t offset_ = 0;  // in it
  size_t left_ = 0;
};

}  // namespace hetero::feed
