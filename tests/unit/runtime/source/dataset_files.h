#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "tests/support/temporary_folder.h"

namespace hetero::source {

using Bytes = std::vector<uint8_t>;

// A temporary folder that holds a dataset.
class DatasetFolder : public testing::TemporaryFolder {
 public:
  using TemporaryFolder::Write;
  void Write(const std::string& relative, std::span<const uint8_t> bytes) const;
  void MakeFolder(const std::string& relative) const;
  // The manifest's way to name this folder or one below it.
  api::DatasetSource Source(const std::string& relative = "") const;
};

// A gzip member laid out by hand (RFC 1952, one stored block), with a bit-by-bit CRC: no zlib.
Bytes StoredGzip(std::span<const uint8_t> bytes);

Bytes Join(const Bytes& a, const Bytes& b);

}  // namespace hetero::source
