#include "runtime/source/manifest.h"
#include "tests/fuzz/shards.h"

// A manifest that lists pictures, behind two bytes: which labels are wanted, and what it is called.
// Every object that it names is there.
namespace hetero {
namespace {

constexpr uint8_t kPicture[] = {0xff, 0xd8, 0xff, 0xe0, 1};
constexpr const char* kNames[] = {"a.manifest", "folder/a.csv", "a.tsv", "a"};

class AllObjects : public fuzz::HeldObjects {
 public:
  absl::StatusOr<storage::Object> ReadAll(std::string_view name, int64_t,
                                          std::vector<uint8_t>* bytes) const override {
    fuzz::Require(!name.empty() && name.size() <= 4096, "a name that is none");
    bytes->assign(std::begin(kPicture), std::end(kPicture));
    return storage::Object{std::string(name), sizeof kPicture, "v"};
  }
};

// Of this input; all roots are one store.
const char* name = kNames[0];

absl::StatusOr<std::unique_ptr<source::Dataset>> OpenNamed(const source::ShardSource& shards,
                                                           const api::DatasetSource& source,
                                                           job::Split, const api::Label& label) {
  const source::StoreOpener open = [&shards](const storage::ObjectUri& object) {
    const std::string& root = object.root;
    fuzz::Require(root == "file:///" || root.starts_with("s3://") || root.starts_with("http"),
                  "a root of no store");
    return absl::StatusOr<std::shared_ptr<const storage::Store>>(shards.store);
  };
  fuzz::Require(source::HasManifest(absl::StrCat("s3://dataset/", name), open, source).ok(),
                "an object that is there and is not looked at");
  return source::OpenManifest(absl::StrCat("s3://dataset/", name), open, source, label);
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  const uint8_t called = input.Byte();
  name = kNames[called & 3];
  auto store = std::make_shared<AllObjects>();
  store->Add(name, input.Rest());
  api::SampleFields fields;
  if ((called & 4) != 0) fields.label.field = "class";
  if ((called & 8) != 0) fields.image = "path";
  if ((called & 16) != 0) fields.label.offset = -1;
  if ((called & 32) != 0) fields.mask = "seg;path";
  fuzz::CheckShards(OpenNamed, store, choice, fields);
  return 0;
}
