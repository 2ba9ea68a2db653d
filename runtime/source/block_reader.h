#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Reads one object from its front to its end in large blocks: what scans a shard asks for a few
// bytes at a time, and stores answer few large requests best. Of one thread.
class BlockReader {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  // Both outlive the reader.
  BlockReader(const storage::Store& store, const storage::Object& object)
      : store_(store), object_(object) {}

  int64_t size() const { return object_.size; }
  const std::string& name() const { return object_.name; }
  // For messages: "file:///data/a.tar".
  std::string where() const;

  // The bytes [offset, offset + length) of the object, which the next call may overwrite.
  // kDataLoss: the object ends before them, and `what` stands in the message. Any other error is
  // the store's.
  absl::StatusOr<std::span<const uint8_t>> At(int64_t offset, size_t length, const char* what);

 private:
  const storage::Store& store_;
  const storage::Object& object_;
  std::vector<uint8_t> block_;
  int64_t begin_ = 0;  // of block_, in the object
};

}  // namespace hetero::source
