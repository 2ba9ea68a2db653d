#include "tests/unit/runtime/source/dataset_files.h"

#include <filesystem>

namespace hetero::source {
namespace {

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

void DatasetFolder::Write(const std::string& relative, std::span<const uint8_t> bytes) const {
  Write(relative, std::string(bytes.begin(), bytes.end()));
}

void DatasetFolder::MakeFolder(const std::string& relative) const {
  std::filesystem::create_directories(*this / relative);
}

api::DatasetSource DatasetFolder::Source(const std::string& relative) const {
  api::DatasetSource source;
  source.uri = "file://" + (relative.empty() ? path() : *this / relative);
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
