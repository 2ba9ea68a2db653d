#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/source/nameless_file.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// The files of a tar archive that is packed with gzip, as a store: published datasets are such. It
// is read and decompressed once, into a nameless file of this machine, whose bytes are the tar's.
class UnpackedArchive : public storage::Store {
 public:
  struct Limits {
    int64_t bytes = int64_t{1} << 30;  // of the archive, packed and not
    size_t files = 10'000;
  };

  // `archive` is an object of `packed`, of one version. kInvalidArgument: it is larger than the
  // limits, or has more files; it is no such archive, or has two files of one name. kDataLoss with
  // a byte: it is damaged, cut short, or decompresses to more. Other errors are the store's, and
  // TMPDIR's.
  static absl::StatusOr<std::unique_ptr<UnpackedArchive>> Open(const storage::Store& packed,
                                                               const storage::Object& archive,
                                                               const Limits& limits);
  // The same within the usual limits, decompressed once for all in this process who have it at a
  // time: both splits of a dataset lie in one archive.
  static absl::StatusOr<std::shared_ptr<const UnpackedArchive>> OpenShared(
      const storage::Store& packed, const storage::Object& archive);

  // "file:///data/cifar-10-binary.tar.gz"
  const std::string& uri() const override { return uri_; }
  // Regular files, by their paths in it without "./" in front, with the archive's version.
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override;
  absl::StatusOr<storage::Object> Head(std::string_view name) const override;
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override;

 private:
  struct Member {
    int64_t offset = 0;
    int64_t size = 0;
  };
  UnpackedArchive(std::string uri, std::string version, NamelessFile file)
      : uri_(std::move(uri)), version_(std::move(version)), file_(std::move(file)) {}

  absl::Status FindMembers(int64_t size, size_t most);

  const std::string uri_;
  const std::string version_;
  const NamelessFile file_;
  std::map<std::string, Member, std::less<>> members_;
};

}  // namespace hetero::source
