#include "runtime/source/idx_file.h"

#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/file.h"
#include "runtime/source/gzip.h"
#include "runtime/source/read_object.h"

namespace hetero::source {
namespace {

// Of one file, unpacked: every process holds the whole set in memory.
constexpr int64_t kMaxFileBytes = int64_t{8} << 30;

absl::Status LoadBytes(const storage::Store* store, const storage::Object& object, IdxFile* file) {
  try {
    HETERO_RETURN_IF_ERROR(store == nullptr
                               ? ReadFile(file->path, kMaxFileBytes, &file->bytes)
                               : ReadObject(*store, object, kMaxFileBytes, &file->bytes));
    if (!IsGzip(file->bytes)) return absl::OkStatus();
    std::vector<uint8_t> packed = std::move(file->bytes);
    file->bytes = {};
    return Gunzip(file->path, packed, kMaxFileBytes, &file->bytes);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file->path, ": there is no memory for the whole file, and an IDX set lies in ",
                     "memory; give each process more, or convert the set to an ImageFolder"));
  }
}

}  // namespace

std::array<std::string, 4> IdxSpellings(job::Split split, std::string_view noun, size_t dimensions,
                                        std::string_view type) {
  const std::string stem =
      std::string(split == job::Split::kTrain ? "train-" : "t10k-").append(noun);
  const std::string kind = absl::StrCat("idx", dimensions, "-").append(type);
  const std::string dashed = absl::StrCat(stem, "-", kind);
  const std::string dotted = absl::StrCat(stem, ".", kind);
  return {dashed, dotted, dashed + ".gz", dotted + ".gz"};
}

absl::StatusOr<IdxFile> LoadIdx(const IdxFolder& folder, const std::array<std::string, 4>& names) {
  absl::Status refused;
  for (const std::string& name : names) {
    IdxFile file{absl::StrCat(folder.name, "/", name), {}};
    storage::Object object;
    std::error_code ignored;
    if (folder.store == nullptr) {
      if (!std::filesystem::exists(file.path, ignored)) continue;
    } else {
      absl::StatusOr<storage::Object> found = folder.store->Head(name);
      // Who may not list a bucket is not told that an object is not there.
      if (absl::IsPermissionDenied(found.status())) refused.Update(found.status());
      if (absl::IsNotFound(found.status()) || absl::IsPermissionDenied(found.status())) continue;
      HETERO_RETURN_IF_ERROR(found.status());
      object = *std::move(found);
    }
    HETERO_RETURN_IF_ERROR(LoadBytes(folder.store, object, &file));
    return file;
  }
  HETERO_RETURN_IF_ERROR(refused);
  return IdxFile{};
}

absl::Status CheckIdxBody(const IdxFile& file, std::string_view noun, size_t header,
                          uint64_t expected) {
  const uint64_t found = file.bytes.size() - header;
  if (found == expected) return absl::OkStatus();
  if (found < expected) {
    return absl::DataLossError(
        absl::StrCat(file.path, ": ends at byte ", file.bytes.size(), ": the header promises ",
                     expected, " bytes of ", absl::string_view(noun.data(), noun.size()),
                     " from byte ", header, " on, found ", found, "; copy the file again"));
  }
  return absl::DataLossError(
      absl::StrCat(file.path, ": ", found - expected, " trailing bytes from byte ",
                   header + expected, ": the header promises ", expected, " bytes of ",
                   absl::string_view(noun.data(), noun.size()), ", found ", found));
}

}  // namespace hetero::source
