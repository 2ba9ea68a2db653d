#include "runtime/source/parquet.h"

#include "runtime/source/thrift_compact.h"
#include "tests/fuzz/shards.h"

// A Parquet file, behind a byte that says which labels are wanted and one that says which columns.
namespace hetero {
namespace {

// What is passed over as a whole is what was given, and lies in the input.
void CheckThrift(std::span<const uint8_t> bytes) {
  const auto inside = [&](std::span<const uint8_t> part) {
    return part.empty() || (part.data() >= bytes.data() &&
                            part.data() + part.size() <= bytes.data() + bytes.size());
  };
  const std::optional<size_t> length =
      source::WalkThriftStruct(bytes, [&](int64_t, const source::ThriftValue& value) {
        fuzz::Require(inside(value.bytes), "a value beyond its struct");
        source::WalkThriftList(value, [&](const source::ThriftValue& element) {
          fuzz::Require(inside(element.bytes), "an element beyond its list");
          return true;
        });
        return true;
      });
  fuzz::Require(!length || *length <= bytes.size(), "a struct beyond its bytes");
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  static constexpr const char* kLabels[] = {"", "tag", "half", "count", "weight"};
  api::SampleFields fields;
  fields.label.field = kLabels[input.Byte() % std::size(kLabels)];
  if ((choice & 16) != 0) fields.mask = "mask;image.path;image";
  const std::span<const uint8_t> file = input.Rest();
  CheckThrift(file);
  auto store = std::make_shared<fuzz::HeldObjects>();
  store->Add("a.parquet", file);
  fuzz::CheckShards(source::OpenParquet, store, choice, fields);
  return 0;
}
