#include "runtime/source/tf_record.h"

#include <array>

#include "base/crc32c.h"
#include "tests/fuzz/shards.h"

// A TFRecord file, behind a byte that says which labels are wanted; or only its records' bytes, a
// length of 16 bits before each, to which lengths and checksums are written here.
namespace hetero {
namespace {

void Append(uint64_t number, size_t bytes, std::vector<uint8_t>* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<uint8_t>(number >> (8 * i)));
}

void AppendCrc(std::span<const uint8_t> bytes, std::vector<uint8_t>* out) {
  const uint32_t crc = base::Crc32c(bytes.data(), bytes.size());
  Append(((crc >> 15) | (crc << 17)) + 0xa282ead8u, 4, out);
}

std::vector<uint8_t> RecordsOf(fuzz::Input input) {
  std::vector<uint8_t> file;
  while (!input.empty()) {
    const std::span<const uint8_t> record = input.Take(input.Short());
    std::vector<uint8_t> length;
    Append(record.size(), 8, &length);
    file.insert(file.end(), length.begin(), length.end());
    AppendCrc(length, &file);
    file.insert(file.end(), record.begin(), record.end());
    AppendCrc(record, &file);
  }
  return file;
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  auto store = std::make_shared<fuzz::HeldObjects>();
  if ((choice & 16) != 0) {
    store->Add("a.tfrecord", input.Rest());
  } else {
    store->Add("a.tfrecord", RecordsOf(input));
  }
  api::SampleFields fields;
  if ((choice & 32) != 0) fields.mask = "mask;image";
  fuzz::CheckShards(source::OpenTfRecord, store, choice, fields);
  return 0;
}
