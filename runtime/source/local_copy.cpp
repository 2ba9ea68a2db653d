#include "runtime/source/local_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "runtime/source/in_parallel.h"
#include "runtime/storage/object_uri.h"
#include "runtime/storage/open_store.h"

namespace hetero::source {
namespace {

constexpr int64_t kPiece = int64_t{8} << 20;
constexpr int kTries = 3;

absl::Status WriteAt(int file, int64_t offset, absl::Span<const uint8_t> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        pwrite(file, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot write");
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<storage::FileDescriptor> NamelessFile(const std::string& folder) {
  storage::FileDescriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.ok()) return file;
  // Not every file system has nameless files.
  std::string path = folder + "/hetero-XXXXXX";
  file = storage::FileDescriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!file.ok()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("TMPDIR ", folder, ": cannot make a file"));
  }
  unlink(path.c_str());
  return file;
}

absl::StatusOr<storage::FileDescriptor> Fetch(const storage::Store& store,
                                              const std::string& name) {
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, store.Head(name));
  const char* given = std::getenv("TMPDIR");
  const std::string folder = given == nullptr || *given == '\0' ? "/tmp" : given;
  HETERO_ASSIGN_OR_RETURN(storage::FileDescriptor file, NamelessFile(folder));
  const auto pieces = static_cast<size_t>((object.size + kPiece - 1) / kPiece);
  HETERO_RETURN_IF_ERROR(InParallel(pieces, [&](size_t i) -> absl::Status {
    const int64_t at = static_cast<int64_t>(i) * kPiece;
    std::vector<uint8_t> piece(static_cast<size_t>(std::min(kPiece, object.size - at)));
    HETERO_RETURN_IF_ERROR(store.Read(object, at, absl::MakeSpan(piece)));
    const absl::Status written = WriteAt(file.get(), at, piece);
    if (written.ok()) return written;
    return absl::Status(written.code(), absl::StrCat("TMPDIR ", folder, ": ", written.message(),
                                                     "; a copy of ", store.uri(), "/", name,
                                                     " takes ", object.size, " bytes there"));
  }));
  return file;
}

}  // namespace

absl::StatusOr<storage::FileDescriptor> OpenLocally(const std::string& uri) {
  absl::string_view path = uri;
  if (absl::ConsumePrefix(&path, "file://")) {
    storage::FileDescriptor file(open(std::string(path).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.ok()) return file;
    return absl::ErrnoToStatus(errno, absl::StrCat(uri, ": cannot be opened"));
  }
  HETERO_ASSIGN_OR_RETURN(const storage::ObjectUri named, storage::ParseObjectUri(uri));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Store> store,
                          storage::OpenStore(named.root));
  for (int tries = 1;; ++tries) {
    absl::StatusOr<storage::FileDescriptor> file = Fetch(*store, named.name);
    // Others may write the same index at this moment.
    if (!absl::IsFailedPrecondition(file.status()) || tries == kTries) return file;
  }
}

}  // namespace hetero::source
