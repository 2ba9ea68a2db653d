#include "runtime/source/unpacked_archive.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/gzip.h"
#include "runtime/source/tar.h"

namespace hetero::source {
namespace {

constexpr int64_t kArchivePiece = int64_t{4} << 20;

// The tar as one object, to be gone through.
class WholeTar : public storage::Store {
 public:
  WholeTar(const std::string& uri, const NamelessFile& file) : uri_(uri), file_(file) {}
  const std::string& uri() const override { return uri_; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    return absl::UnimplementedError(uri_);
  }
  absl::StatusOr<storage::Object> Head(std::string_view) const override {
    return absl::UnimplementedError(uri_);
  }
  absl::Status Read(const storage::Object&, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    return file_.ReadAt(offset, out);
  }

 private:
  const std::string& uri_;
  const NamelessFile& file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnpackedArchive>> UnpackedArchive::Open(
    const storage::Store& packed, const storage::Object& archive, const Limits& limits) {
  std::string uri = absl::StrCat(packed.uri(), "/", archive.name);
  if (archive.size > limits.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(uri, ": has ", archive.size,
                                                   " bytes, and archives of up to ", limits.bytes,
                                                   " are read as they are; unpack it"));
  }
  HETERO_ASSIGN_OR_RETURN(NamelessFile file, NamelessFile::Create());
  int64_t written = 0;
  const auto write = [&](std::span<const uint8_t> bytes) -> absl::Status {
    const absl::Status wrote = file.WriteAt(written, bytes);
    written += static_cast<int64_t>(bytes.size());
    if (wrote.ok()) return wrote;
    return absl::Status(wrote.code(),
                        absl::StrCat(wrote.message(), "; ", uri, " is decompressed there"));
  };
  GzipReader reader(uri, archive.size, limits.bytes, write);
  std::vector<uint8_t> piece;
  for (int64_t at = 0; at < archive.size; at += kArchivePiece) {
    piece.resize(static_cast<size_t>(std::min(kArchivePiece, archive.size - at)));
    HETERO_RETURN_IF_ERROR(packed.Read(archive, at, absl::MakeSpan(piece)));
    HETERO_RETURN_IF_ERROR(reader.Add(piece));
  }
  HETERO_ASSIGN_OR_RETURN(const int64_t size, reader.End());
  std::unique_ptr<UnpackedArchive> unpacked(
      new UnpackedArchive(std::move(uri), archive.version, std::move(file)));
  HETERO_RETURN_IF_ERROR(unpacked->FindMembers(size, limits.files));
  return unpacked;
}

absl::StatusOr<std::shared_ptr<const UnpackedArchive>> UnpackedArchive::OpenShared(
    const storage::Store& packed, const storage::Object& archive) {
  static base::Mutex mutex;
  static auto& opened = *new std::map<std::string, std::weak_ptr<const UnpackedArchive>>;
  const std::string key = absl::StrCat(packed.uri(), "/", archive.name, " ", archive.version);
  const base::MutexLock lock(mutex);
  if (!archive.version.empty()) {
    if (std::shared_ptr<const UnpackedArchive> there = opened[key].lock()) return there;
  }
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<const UnpackedArchive> unpacked,
                          Open(packed, archive, Limits()));
  opened[key] = unpacked;
  return unpacked;
}

absl::Status UnpackedArchive::FindMembers(int64_t size, size_t most) {
  const WholeTar tar(uri_, file_);
  const storage::Object whole = {.name = "its tar", .size = size};
  BlockReader blocks(tar, whole);
  TarReader reader(blocks);
  TarMember member;
  while (true) {
    HETERO_ASSIGN_OR_RETURN(const bool more, reader.Next(&member));
    if (!more) return absl::OkStatus();
    std::string_view name = member.name;
    while (name.starts_with("./")) name.remove_prefix(2);
    if (name.empty()) continue;  // nobody can ask for it
    if (members_.size() == most) {
      return absl::InvalidArgumentError(
          absl::StrCat(uri_, ": has more than ", most, " files; unpack it"));
    }
    if (!members_.try_emplace(std::string(name), Member{member.offset, member.size}).second) {
      return absl::InvalidArgumentError(absl::StrCat(uri_, ": has two files ", std::string(name),
                                                     "; which one is meant, nobody can tell"));
    }
  }
}

absl::StatusOr<std::vector<storage::Object>> UnpackedArchive::List(std::string_view prefix) const {
  std::vector<storage::Object> objects;
  for (const auto& [name, member] : members_) {
    if (name.starts_with(prefix)) objects.push_back({name, member.size, version_});
  }
  return objects;
}

absl::StatusOr<storage::Object> UnpackedArchive::Head(std::string_view name) const {
  const auto found = members_.find(name);
  if (found != members_.end()) return storage::Object{found->first, found->second.size, version_};
  return absl::NotFoundError(absl::StrCat(uri_, ": has no file ", std::string(name)));
}

absl::Status UnpackedArchive::Read(const storage::Object& object, int64_t offset,
                                   absl::Span<uint8_t> out) const {
  const auto found = members_.find(object.name);
  if (found == members_.end()) {
    return absl::NotFoundError(absl::StrCat(uri_, ": has no file ", object.name));
  }
  const int64_t size = found->second.size;
  if (offset < 0 || offset > size || static_cast<int64_t>(out.size()) > size - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(uri_, "/", object.name, ": has not so many bytes as are read"));
  }
  return file_.ReadAt(found->second.offset + offset, out);
}

}  // namespace hetero::source
