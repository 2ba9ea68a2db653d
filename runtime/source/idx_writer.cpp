#include "runtime/source/idx_writer.h"

#include <zlib.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

// zlib's file functions leave the system's reason in errno, or set none at all.
absl::Status Failed(const std::string& path, const char* action) {
  const int error = errno != 0 ? errno : EIO;
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot ", action));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdxWriter>> IdxWriter::Create(
    const std::string& path, uint32_t magic, const std::vector<uint32_t>& dimensions) {
  errno = 0;
  gzFile_s* file = gzopen(path.c_str(), "wbx6");
  if (file == nullptr) return Failed(path, "create");
  std::unique_ptr<IdxWriter> writer(new IdxWriter(path, file));
  std::vector<uint8_t> header;
  const auto append = [&header](uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<uint8_t>(word >> shift));
  };
  append(magic);
  for (const uint32_t dimension : dimensions) append(dimension);
  HETERO_RETURN_IF_ERROR(writer->Write(header));
  return writer;
}

IdxWriter::~IdxWriter() {
  if (file_ != nullptr) gzclose(file_);
}

absl::Status IdxWriter::Write(std::span<const uint8_t> bytes) {
  errno = 0;
  const auto size = static_cast<unsigned>(bytes.size());
  if (gzwrite(file_, bytes.data(), size) != static_cast<int>(size)) return Failed(path_, "write");
  return absl::OkStatus();
}

absl::Status IdxWriter::Close() {
  errno = 0;
  if (gzclose(std::exchange(file_, nullptr)) != Z_OK) return Failed(path_, "finish writing");
  return absl::OkStatus();
}

}  // namespace hetero::source
