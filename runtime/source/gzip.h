#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::source {

bool IsGzip(std::span<const uint8_t> bytes);

// Decompresses a gzip file piece by piece: all its members, one behind the other. Of one thread.
class GzipReader {
 public:
  // Takes the next decompressed bytes; its error ends the reading.
  using Sink = std::function<absl::Status(std::span<const uint8_t> bytes)>;

  // `name` stands in messages, `size` is the file's. More than `limit` bytes are not decompressed:
  // a small file can unpack to a thousand times as much.
  GzipReader(std::string name, int64_t size, int64_t limit, Sink sink);
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader();

  // The file's next bytes. kDataLoss with the byte offset in the file when they are damaged,
  // followed by other bytes, or hold more than the limit.
  absl::Status Add(std::span<const uint8_t> bytes);
  // Once all were added: how many bytes they were. kDataLoss: the file is cut short.
  absl::StatusOr<int64_t> End() const;

 private:
  struct Stream;

  absl::Status Step();
  absl::Status OtherBytes() const;

  const std::string name_;
  const int64_t size_;
  const int64_t limit_;
  const Sink sink_;
  const std::unique_ptr<Stream> stream_;
  std::vector<uint8_t> out_;
  bool ended_ = false;    // a member, and no other one has begun
  int64_t consumed_ = 0;  // of the file
  int64_t member_ = 0;    // where in the file the last one begins
  int64_t produced_ = 0;
};

// Decompresses a gzip file that lies in memory into `*out`. Errors are those of GzipReader.
absl::Status Gunzip(const std::string& name, std::span<const uint8_t> bytes, int64_t limit,
                    std::vector<uint8_t>* out);

}  // namespace hetero::source
