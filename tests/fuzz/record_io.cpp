#include "runtime/source/record_io.h"

#include "tests/fuzz/shards.h"

// A RecordIO file, behind a byte that says which labels are wanted.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  auto store = std::make_shared<fuzz::HeldObjects>();
  store->Add("a.rec", input.Rest());
  fuzz::CheckShards(source::OpenRecordIo, store, choice, {});
  return 0;
}
