#include "runtime/source/mds.h"

#include "runtime/source/mds_index.h"
#include "tests/fuzz/shards.h"

// An MDS dataset of one shard, behind a byte that says which labels are wanted: its index.json, the
// length of which stands before it, and the shard; or the shard alone, with an index that fits.
namespace hetero {
namespace {

// Columns as in tests/golden/datasets/mds, and a label of one of four encodings.
std::string IndexOf(size_t bytes, uint8_t samples, uint8_t choice) {
  static constexpr const char* kLabels[] = {"ndarray:float32:2", "str_float", "str_int", "uint16"};
  return absl::StrCat(
      R"({"version": 2, "shards": [{"version": 2, "format": "mds", "compression": null,)",
      R"("column_names": ["box", "class", "image", "label"],)",
      R"("column_encodings": ["ndarray:float32:4", "int", "bytes", ")", kLabels[choice >> 5 & 3],
      R"("], "column_sizes": [16, 8, null, null], "raw_data": {"basename": "a.mds", "bytes": )",
      bytes, R"(}, "samples": )", int{samples}, "}]}");
}

void CheckIndex(std::string_view text) {
  const absl::StatusOr<source::MdsIndex> index = source::ParseMdsIndex("index.json", text);
  if (!index.ok()) {
    fuzz::Require(absl::StrContains(index.status().message(), "index.json"), "no place");
    return;
  }
  for (const source::MdsShard& shard : index->shards) {
    fuzz::Require(shard.bytes >= 0 && shard.samples >= 0, "a shard of no size");
  }
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  auto store = std::make_shared<fuzz::HeldObjects>();
  std::string index;
  if ((choice & 16) != 0) {
    index = input.Text(input.Short());
    CheckIndex(index);
    store->Add("a.mds", input.Rest());
  } else {
    const uint8_t samples = input.Byte();
    const std::span<const uint8_t> shard = input.Rest();
    index = IndexOf(shard.size(), samples, choice);
    store->Add("a.mds", shard);
  }
  store->Add(source::kMdsIndex, {reinterpret_cast<const uint8_t*>(index.data()), index.size()});
  api::SampleFields fields;
  if ((choice & 32) != 0) fields.mask = "mask;image";
  fuzz::CheckShards(source::OpenMds, store, choice, fields);
  return 0;
}
