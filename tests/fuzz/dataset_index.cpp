#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/match.h"
#include "base/crc32c.h"
#include "runtime/source/index_file.h"
#include "tests/fuzz/fuzz.h"

// An index of a dataset of two shards, behind a byte that says whether its checksums are to be
// right, which they are made here then.
namespace hetero {
namespace {

constexpr char kWhere[] = "memory://index";
constexpr int64_t kShardBytes = 4096;

// Both checksums of what stands where the format has a description and a table.
void MakeChecksums(std::vector<uint8_t>* index) {
  if (index->size() < 32) return;
  uint32_t length = 0;
  std::memcpy(&length, index->data() + 12, sizeof length);
  if (length > index->size() - 32) return;
  const uint8_t* const table = index->data() + 32 + length;
  const uint32_t description =
      base::Crc32c(index->data() + 32, length, base::Crc32c(index->data(), 24));
  const uint32_t places = base::Crc32c(table, index->size() - 32 - length);
  std::memcpy(index->data() + 24, &description, sizeof description);
  std::memcpy(index->data() + 28, &places, sizeof places);
}

storage::FileDescriptor FileOf(const std::vector<uint8_t>& bytes) {
  storage::FileDescriptor file(memfd_create("index", MFD_CLOEXEC));
  fuzz::Require(write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                "no memory for the file");
  return file;
}

}  // namespace
}  // namespace hetero

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero;
  fuzz::Silence();
  fuzz::Input input(data, size);
  const bool right = (input.Byte() & 1) != 0;
  const std::span<const uint8_t> rest = input.Rest();
  std::vector<uint8_t> index(rest.begin(), rest.end());
  if (right) MakeChecksums(&index);
  const source::IndexedShards shards = {
      "TFRecord", "image a, label b + 0", {{"a", kShardBytes, "1"}, {"b", kShardBytes, "2"}}};
  const absl::StatusOr<source::SampleTable> table =
      source::ReadIndex(FileOf(index), kWhere, "the command", "memory://dataset", shards);
  if (!table.ok()) {
    fuzz::Require(absl::StrContains(table.status().message(), kWhere), "no place");
    fuzz::Require(absl::IsDataLoss(table.status()) || absl::IsInvalidArgument(table.status()) ||
                      absl::IsFailedPrecondition(table.status()),
                  "an index that is refused as something else");
    return 0;
  }
  for (int64_t id = 0; id < table->size(); ++id) {
    const absl::StatusOr<source::SampleLocation> location = table->At(id);
    fuzz::Require(location.ok(), "a sample without a location");
    fuzz::Require(location->shard < 2 && location->offset >= 0 &&
                      location->offset + location->length <= kShardBytes,
                  "a sample outside its shard");
  }
  return 0;
}
