#include "runtime/source/web_dataset.h"

#include "tests/fuzz/shards.h"

// A tar archive of a WebDataset, behind a byte that says which labels are wanted and whether they
// are of a JSON field.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  auto store = std::make_shared<fuzz::HeldObjects>();
  store->Add("a.tar", input.Rest());
  api::SampleFields fields;
  if ((choice & 16) != 0) fields.label.field = "json/label";
  fuzz::CheckShards(source::OpenWebDataset, store, choice, fields);
  return 0;
}
