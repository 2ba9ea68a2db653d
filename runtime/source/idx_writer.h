#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct gzFile_s;

namespace hetero::source {

// Writes one gzipped IDX file piece by piece. The gzip header carries no time, so equal contents
// give equal files. Not thread-safe.
class IdxWriter {
 public:
  // Creates `path` and writes the header: `magic`, then `dimensions` (the count first).
  static absl::StatusOr<std::unique_ptr<IdxWriter>> Create(const std::string& path, uint32_t magic,
                                                           const std::vector<uint32_t>& dimensions);
  ~IdxWriter();
  IdxWriter(const IdxWriter&) = delete;
  IdxWriter& operator=(const IdxWriter&) = delete;

  absl::Status Write(std::span<const uint8_t> bytes);
  // Flushes and closes; a full disk may show only here. No call may follow.
  absl::Status Close();

 private:
  IdxWriter(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  gzFile_s* file_;
};

}  // namespace hetero::source
