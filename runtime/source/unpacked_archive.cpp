#include "runtime/source/unpacked_archive.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/tar.h"

namespace hetero::source {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib.h: 16 asks for a gzip header and trailer
constexpr int64_t kPiece = int64_t{4} << 20;

absl::Status ReadAt(int file, int64_t offset, absl::Span<uint8_t> out, const std::string& where) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t count =
        pread(file, out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat(where, ": cannot be read"));
    if (count == 0) return absl::OutOfRangeError(absl::StrCat(where, ": ends before"));
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

// The tar as one object, to be gone through.
class WholeTar : public storage::Store {
 public:
  WholeTar(const std::string& uri, int file) : uri_(uri), file_(file) {}
  const std::string& uri() const override { return uri_; }
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view) const override {
    return absl::UnimplementedError(uri_);
  }
  absl::StatusOr<storage::Object> Head(std::string_view) const override {
    return absl::UnimplementedError(uri_);
  }
  absl::Status Read(const storage::Object&, int64_t offset,
                    absl::Span<uint8_t> out) const override {
    return ReadAt(file_, offset, out, uri_);
  }

 private:
  const std::string& uri_;
  const int file_;
};

// Decompresses the members of a gzip file piece by piece.
class Inflater {
 public:
  Inflater(const std::string& where, const NamelessFile& file, int64_t most_bytes)
      : where_(where), file_(file), most_bytes_(most_bytes), out_(kPiece) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  absl::Status Begin() {
    if (inflateInit2(&stream_, kGzipWindowBits) == Z_OK) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(where_, ": no memory to decompress"));
  }

  absl::Status Add(absl::Span<uint8_t> bytes) {
    stream_.next_in = bytes.data();
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (stream_.avail_in > 0) {
      if (ended_) {  // another member follows
        inflateReset(&stream_);
        ended_ = false;
      }
      HETERO_RETURN_IF_ERROR(Step());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> End() const {
    if (ended_) return produced_;
    return absl::DataLossError(absl::StrCat(where_, ": the gzip data is cut short at byte ",
                                            consumed_, "; copy the file again"));
  }

 private:
  absl::Status Step() {
    int result = Z_OK;
    do {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      const uInt left = stream_.avail_in;
      result = inflate(&stream_, Z_NO_FLUSH);
      consumed_ += left - stream_.avail_in;
      const size_t count = out_.size() - stream_.avail_out;
      if (produced_ + static_cast<int64_t>(count) > most_bytes_) {
        return absl::DataLossError(absl::StrCat(where_, ": holds more than the ", most_bytes_,
                                                " bytes that are unpacked; unpack it yourself"));
      }
      HETERO_RETURN_IF_ERROR(file_.WriteAt(produced_, {out_.data(), count}));
      produced_ += static_cast<int64_t>(count);
      // Z_BUF_ERROR: it wants more than this piece has.
    } while (result == Z_OK && stream_.avail_out == 0);
    ended_ = result == Z_STREAM_END;
    if (ended_ || result == Z_OK || result == Z_BUF_ERROR) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(where_, ": damaged gzip data near byte ", consumed_, " (",
                     stream_.msg != nullptr ? stream_.msg : "no detail", "); copy the file again"));
  }

  const std::string& where_;
  const NamelessFile& file_;
  const int64_t most_bytes_;
  std::vector<uint8_t> out_;
  z_stream stream_{};
  bool ended_ = false;
  int64_t consumed_ = 0;
  int64_t produced_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnpackedArchive>> UnpackedArchive::Open(
    const storage::Store& packed, const storage::Object& archive, int64_t most_bytes) {
  std::string uri = absl::StrCat(packed.uri(), "/", archive.name);
  if (archive.size > most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(uri, ": has ", archive.size,
                                                   " bytes, and archives of up to ", most_bytes,
                                                   " are read as they are; unpack it"));
  }
  HETERO_ASSIGN_OR_RETURN(NamelessFile file, NamelessFile::Create());
  Inflater inflater(uri, file, most_bytes);
  HETERO_RETURN_IF_ERROR(inflater.Begin());
  std::vector<uint8_t> piece;
  for (int64_t at = 0; at < archive.size; at += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, archive.size - at)));
    HETERO_RETURN_IF_ERROR(packed.Read(archive, at, absl::MakeSpan(piece)));
    HETERO_RETURN_IF_ERROR(inflater.Add(absl::MakeSpan(piece)));
  }
  HETERO_ASSIGN_OR_RETURN(const int64_t size, inflater.End());
  std::unique_ptr<UnpackedArchive> unpacked(
      new UnpackedArchive(std::move(uri), archive.version, std::move(file)));
  HETERO_RETURN_IF_ERROR(unpacked->FindMembers(size));
  return unpacked;
}

absl::Status UnpackedArchive::FindMembers(int64_t size) {
  const WholeTar tar(uri_, file_.get());
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
  return ReadAt(file_.get(), found->second.offset + offset, out, uri_);
}

}  // namespace hetero::source
