#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/source/block_reader.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// The bytes of one object from its front to its end, one by one, and which line they are on: what a
// text is parsed from that does not fit into memory. A byte order mark of UTF-8 is passed over. Of
// one thread.
class ByteStream {
 public:
  static constexpr int kEnd = -1;

  // Both outlive the stream.
  ByteStream(const storage::Store& store, const storage::Object& object);

  // The next byte, 0 to 255, which stays there; kEnd behind the last one, and after an error.
  int Peek() { return next_ < block_.size() || Fill() ? block_[next_] : kEnd; }
  // Goes on behind it, and gives it.
  int Next() {
    const int byte = Peek();
    if (byte == kEnd) return byte;
    ++next_;
    if (byte == '\n') ++line_;
    return byte;
  }

  // What is at hand from the next byte on, of a large block; empty at the end.
  std::string_view Ahead() {
    if (Peek() == kEnd) return {};
    return {reinterpret_cast<const char*>(block_.data()) + next_, block_.size() - next_};
  }

  int64_t offset() const { return begin_ + static_cast<int64_t>(next_); }  // of the next byte
  int64_t line() const { return line_; }                                   // that it is on, from 1
  // The store's error, where one ended the stream.
  const absl::Status& status() const { return status_; }
  // For messages: "s3://bucket/a.csv".
  std::string where() const { return reader_.where(); }

 private:
  // False where there are no more bytes.
  bool Fill();

  BlockReader reader_;
  std::span<const uint8_t> block_;
  size_t next_ = 0;    // in block_
  int64_t begin_ = 0;  // of block_, in the object
  int64_t line_ = 1;
  absl::Status status_;
};

}  // namespace hetero::source
