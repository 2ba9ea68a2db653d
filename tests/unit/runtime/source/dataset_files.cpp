#include "tests/unit/runtime/source/dataset_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

uint32_t Crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

void AppendLittleEndian(uint32_t word, int bytes, Bytes* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<uint8_t>(word >> (8 * i)));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "hetero-source-XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TemporaryFolder::Write(std::string_view relative, std::span<const uint8_t> bytes) const {
  fs::create_directories((path_ / relative).parent_path());
  std::ofstream file(path_ / relative, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good());
}

void TemporaryFolder::Write(std::string_view relative, std::string_view text) const {
  Write(relative, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

void TemporaryFolder::MakeFolder(std::string_view relative) const {
  fs::create_directories(path_ / relative);
}

api::DatasetSource TemporaryFolder::Source(std::string_view relative) const {
  api::DatasetSource source;
  source.uri = "file://" + (relative.empty() ? path() : Path(relative));
  return source;
}

Bytes StoredGzip(std::span<const uint8_t> bytes) {
  Bytes out = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1};
  const auto size = static_cast<uint32_t>(bytes.size());
  AppendLittleEndian(size, 2, &out);
  AppendLittleEndian(~size, 2, &out);
  out.insert(out.end(), bytes.begin(), bytes.end());
  AppendLittleEndian(Crc32(bytes), 4, &out);
  AppendLittleEndian(size, 4, &out);
  return out;
}

Bytes Join(const Bytes& a, const Bytes& b) {
  Bytes all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace hetero::source
