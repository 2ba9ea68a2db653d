#include "runtime/source/web_dataset.h"

#include <algorithm>

#include "runtime/source/block_reader.h"
#include "runtime/source/tar.h"
#include "runtime/source/unpacked_archive.h"
#include "tests/fuzz/gzip.h"
#include "tests/fuzz/shards.h"

// A tar archive of a WebDataset, behind a byte that says which labels are wanted and whether they
// are of a JSON field, and (64) whether there are masks; or (32) what UnpackedArchive reads: the
// same packed by gzip, or (64) the packed bytes themselves.
namespace hetero {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

// What is read from the archive is what lies where TarReader says in the tar.
void CheckMembers(const source::UnpackedArchive& archive, std::span<const uint8_t> tar) {
  fuzz::HeldObjects plain;
  plain.Add("a.tar", tar);
  const storage::Object whole = *plain.Head("a.tar");
  source::BlockReader blocks(plain, whole);
  source::TarReader reader(blocks);
  source::TarMember member;
  std::vector<uint8_t> read;
  while (*reader.Next(&member)) {
    std::string_view name = member.name;
    while (name.starts_with("./")) name.remove_prefix(2);
    if (name.empty()) continue;
    const auto file = archive.Head(name);
    fuzz::Require(file.ok() && file->size == member.size, "a member of another size");
    read.resize(static_cast<size_t>(file->size));
    fuzz::Require(archive.Read(*file, 0, absl::MakeSpan(read)).ok(), "a member that is not read");
    const auto wanted = tar.subspan(static_cast<size_t>(member.offset), read.size());
    fuzz::Require(std::equal(read.begin(), read.end(), wanted.begin()), "other bytes");
  }
}

void CheckArchive(std::span<const uint8_t> bytes, bool packed) {
  fuzz::HeldObjects store;
  if (packed) {
    store.Add("a.tar.gz", bytes);
  } else {
    store.Add("a.tar.gz", fuzz::Gzip(bytes));
  }
  const auto archive =
      source::UnpackedArchive::Open(store, *store.Head("a.tar.gz"), {.bytes = kMostBytes});
  if (!archive.ok()) {
    fuzz::Require(absl::IsDataLoss(archive.status()) || absl::IsInvalidArgument(archive.status()),
                  "an archive that is refused as something else");
    fuzz::Require(absl::StrContains(archive.status().message(), "memory://dataset/a.tar.gz"),
                  "an error that does not name the archive");
    return;
  }
  if (!packed) CheckMembers(**archive, bytes);
  uint8_t byte = 0;
  const auto files = (*archive)->List("");
  for (const storage::Object& file : *files) {
    fuzz::Require(!file.name.empty() && *(*archive)->Head(file.name) == file, "another file");
    fuzz::Require(absl::IsOutOfRange((*archive)->Read(file, file.size, absl::MakeSpan(&byte, 1))),
                  "one byte too many");
  }
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  if ((choice & 32) != 0) {
    CheckArchive(input.Rest(), (choice & 64) != 0);
    return 0;
  }
  auto store = std::make_shared<fuzz::HeldObjects>();
  store->Add("a.tar", input.Rest());
  api::SampleFields fields;
  if ((choice & 16) != 0) fields.label.field = "json/label";
  if ((choice & 64) != 0) fields.mask = "seg.png;mask";
  fuzz::CheckShards(source::OpenWebDataset, store, choice, fields);
  return 0;
}
