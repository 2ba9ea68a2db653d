#include "runtime/source/index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

using nlohmann::json;

constexpr char kMagic[] = "heteroix";
constexpr uint32_t kVersion = 1;
constexpr size_t kHead = kIndexHead;
constexpr uint32_t kMaxDescription = 512u << 20;
constexpr size_t kMostDifference = size_t{1} << 16;
constexpr size_t kWriteAtOnce = size_t{1} << 16;  // locations

struct Head {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t description;  // bytes
  int64_t samples;
  uint32_t description_crc;
  uint32_t table_crc;
};
static_assert(sizeof(Head) == kHead);

constexpr size_t kCovered = offsetof(Head, description_crc);

// Of the head's first bytes and the description.
uint32_t DescriptionCrc(const Head& head, const std::string& description) {
  return base::Crc32c(description.data(), description.size(), base::Crc32c(&head, kCovered));
}

// Where the table begins.
int64_t TableAfter(uint32_t description) { return int64_t{kHead} + description; }

std::string Describe(const IndexedShards& shards) {
  json list = json::array();
  for (const storage::Object& shard : shards.shards) {
    list.push_back({{"name", shard.name}, {"size", shard.size}, {"version", shard.version}});
  }
  // Names of files are any bytes; those that are no text are replaced, and compared in that form.
  std::string text =
      json{{"format", shards.format}, {"rule", shards.rule}, {"shards", std::move(list)}}.dump(
          -1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the table behind it is aligned
  return text;
}

// For messages; it may hold anything, and be as large as the file.
std::string Shown(const json& object, const char* key) {
  constexpr size_t kMost = 200;
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "none";
  const std::string& text = object[key].get_ref<const std::string&>();
  return absl::StrCat("\"", text.size() <= kMost ? text : "...", "\"");
}

absl::Span<const uint8_t> BytesOf(const void* bytes, size_t size) {
  return {static_cast<const uint8_t*>(bytes), size};
}

bool IsIndex(const Head& head) {
  return std::memcmp(head.magic.data(), kMagic, head.magic.size()) == 0;
}

// Whether `size` bytes are what the head says.
bool HasLength(const Head& head, int64_t size) {
  const int64_t table = size - TableAfter(head.description);
  constexpr int64_t kEach = sizeof(SampleLocation);
  return head.description <= kMaxDescription && table >= 0 && table % kEach == 0 &&
         table / kEach == head.samples;
}

absl::Status NoIndex(const std::string& where) {
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": is no index; dataset.index.uri names what `hetero-runtime index` wrote"));
}

class IndexReader {
 public:
  IndexReader(storage::FileDescriptor file, const std::string& where, const std::string& command,
              const std::string& dataset, const IndexedShards& shards)
      : file_(std::move(file)),
        where_(where),
        command_(command),
        dataset_(dataset),
        shards_(shards),
        wanted_(Describe(shards)) {}

  absl::StatusOr<SampleTable> Read() {
    HETERO_RETURN_IF_ERROR(ReadHead());
    std::string description(head_.description, '\0');
    HETERO_RETURN_IF_ERROR(ReadAt(kHead, description.data(), description.size()));
    if (DescriptionCrc(head_, description) != head_.description_crc) return Damaged();
    HETERO_RETURN_IF_ERROR(Compare(description));
    HETERO_ASSIGN_OR_RETURN(
        SampleTable table,
        SampleTable::InFile(std::move(file_), where_, TableAfter(head_.description), head_.samples,
                            [this](int64_t first, absl::Span<const SampleLocation> block) {
                              return CheckBlock(first, block);
                            }));
    if (table.checksum() != head_.table_crc) return Damaged();
    return table;
  }

 private:
  absl::Status ReadHead() {
    struct stat status;
    if (fstat(file_.get(), &status) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat(where_, ": cannot be read"));
    }
    if (!S_ISREG(status.st_mode) || status.st_size < kIndexHead) return NoIndex(where_);
    HETERO_RETURN_IF_ERROR(ReadAt(0, &head_, kHead));
    if (!IsIndex(head_)) return NoIndex(where_);
    if (head_.version != kVersion) {
      return absl::FailedPreconditionError(absl::StrCat(where_, ": an index of version ",
                                                        head_.version, ", and this program reads ",
                                                        kVersion, "; ", Remedy()));
    }
    if (!HasLength(head_, status.st_size)) return Damaged();
    // What is so much longer is parsed for no message.
    if (head_.description > 2 * wanted_.size() + kMostDifference) {
      return Other(absl::StrCat("it lists far more shards than the ", shards_.shards.size(), " of ",
                                dataset_));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAt(size_t offset, void* out, size_t size) {
    const ssize_t count = storage::ReadAt(file_.get(), static_cast<int64_t>(offset), out, size);
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat(where_, ": cannot be read"));
    return count < static_cast<ssize_t>(size) ? Damaged() : absl::OkStatus();
  }

  // Of what the description says and what there is.
  absl::Status Compare(const std::string& description) const {
    if (description == wanted_) return absl::OkStatus();
    const json there = json::parse(description, nullptr, /*allow_exceptions=*/false);
    const json here = json::parse(wanted_, nullptr, /*allow_exceptions=*/false);
    if (!there.is_object() || !there.contains("shards") || !there["shards"].is_array()) {
      return Damaged();
    }
    for (const char* what : {"format", "rule"}) {
      if (there.contains(what) && there[what] == here[what]) continue;
      return Other(absl::StrCat("it was made with ", what, " ", Shown(there, what), ", and ",
                                dataset_, " has ", Shown(here, what)));
    }
    const json& old = there["shards"];
    const json& now = here["shards"];
    for (size_t i = 0; i < std::min(old.size(), now.size()); ++i) {
      if (old[i] == now[i]) continue;
      const std::string name = Shown(now[i], "name");
      if (Shown(old[i], "name") != name) {
        return Other(absl::StrCat(dataset_, " has the shard ", name, ", and it has ",
                                  Shown(old[i], "name"), " there"));
      }
      return Other(absl::StrCat(dataset_, "/", shards_.shards[i].name,
                                " was changed or copied since it was made"));
    }
    return Other(absl::StrCat(dataset_, " has ", now.size(), " shards, and it has ", old.size()));
  }

  bool Lies(const SampleLocation& location) const {
    if (location.shard >= shards_.shards.size()) return false;
    const int64_t size = shards_.shards[location.shard].size;
    const auto inside = [size](int64_t offset, int64_t length) {
      return offset >= 0 && length <= size && offset <= size - length;
    };
    if (!inside(location.offset, location.length)) return false;
    return location.label_length <= kMaxLabelBytes &&
           (location.label_length == 0 ||
            inside(location.offset + location.label, location.label_length));
  }

  absl::Status CheckBlock(int64_t first, absl::Span<const SampleLocation> block) const {
    for (size_t i = 0; i < block.size(); ++i) {
      const SampleLocation& location = block[i];
      if (Lies(location)) continue;
      return Damaged(absl::StrCat(" (sample ", first + static_cast<int64_t>(i),
                                  " lies in none of the shards)"));
    }
    return absl::OkStatus();
  }

  std::string Remedy() const { return absl::StrCat("make it again: ", command_); }
  absl::Status Damaged(const std::string& how = "") const {
    return absl::DataLossError(absl::StrCat(where_, ": the index is damaged", how, "; ", Remedy()));
  }
  absl::Status Other(const std::string& what) const {
    return absl::FailedPreconditionError(
        absl::StrCat(where_, ": the index does not go with this dataset: ", what, "; ", Remedy()));
  }

  storage::FileDescriptor file_;
  const std::string& where_;
  const std::string& command_;
  const std::string& dataset_;
  const IndexedShards& shards_;
  const std::string wanted_;  // the description
  Head head_ = {};
};

}  // namespace

absl::Status WriteIndex(const IndexedShards& shards, absl::Span<const SampleLocation> samples,
                        storage::ObjectWriter& out) {
  const std::string description = Describe(shards);
  if (description.size() > kMaxDescription) {
    return absl::InvalidArgumentError(
        absl::StrCat(shards.shards.size(),
                     " shards are too many for an index, whose list of them "
                     "has at most ",
                     kMaxDescription, " bytes; put the samples into fewer, larger ones"));
  }
  Head head = {};
  std::copy_n(kMagic, head.magic.size(), head.magic.begin());
  head.version = kVersion;
  head.description = static_cast<uint32_t>(description.size());
  head.samples = static_cast<int64_t>(samples.size());
  head.description_crc = DescriptionCrc(head, description);
  head.table_crc = base::Crc32c(samples.data(), samples.size() * sizeof(SampleLocation));
  HETERO_RETURN_IF_ERROR(out.Append(BytesOf(&head, kHead)));
  HETERO_RETURN_IF_ERROR(out.Append(BytesOf(description.data(), description.size())));
  for (size_t first = 0; first < samples.size(); first += kWriteAtOnce) {
    const absl::Span<const SampleLocation> block = samples.subspan(first, kWriteAtOnce);
    HETERO_RETURN_IF_ERROR(
        out.Append(BytesOf(block.data(), block.size() * sizeof(SampleLocation))));
  }
  return absl::OkStatus();
}

absl::Status CheckIndexHead(absl::Span<const uint8_t> head, int64_t size,
                            const std::string& where) {
  Head found = {};
  if (head.size() < kHead) return NoIndex(where);
  std::memcpy(&found, head.data(), kHead);
  return IsIndex(found) && (found.version != kVersion || HasLength(found, size)) ? absl::OkStatus()
                                                                                 : NoIndex(where);
}

absl::StatusOr<SampleTable> ReadIndex(storage::FileDescriptor file, const std::string& where,
                                      const std::string& command, const std::string& dataset,
                                      const IndexedShards& shards) {
  return IndexReader(std::move(file), where, command, dataset, shards).Read();
}

}  // namespace hetero::source
