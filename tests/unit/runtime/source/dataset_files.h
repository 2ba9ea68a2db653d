#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::source {

using Bytes = std::vector<uint8_t>;

// A new folder below the system's temporary folder, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string Path(std::string_view relative) const { return (path_ / relative).string(); }
  // Writes a file, making its folders.
  void Write(std::string_view relative, std::span<const uint8_t> bytes) const;
  void Write(std::string_view relative, std::string_view text) const;
  void MakeFolder(std::string_view relative) const;
  // The manifest's way to name this folder or one below it.
  api::DatasetSource Source(std::string_view relative = "") const;

 private:
  std::filesystem::path path_;
};

// A gzip member laid out by hand (RFC 1952, one stored block), with a bit-by-bit CRC: no zlib.
Bytes StoredGzip(std::span<const uint8_t> bytes);

Bytes Join(const Bytes& a, const Bytes& b);

}  // namespace hetero::source
