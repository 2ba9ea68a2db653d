#include "runtime/source/dataset.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/source/idx.h"
#include "runtime/source/image_folder.h"
#include "runtime/source/synthetic.h"
#include "runtime/source/uri.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;
using api::DatasetFormat;

constexpr size_t kNamesInMessages = 5;

struct Found {
  std::vector<std::string> files;    // sorted
  std::vector<std::string> folders;  // sorted
};

absl::StatusOr<Found> List(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const std::string message =
        absl::StrCat("dataset ", path,
                     ": cannot be opened; check dataset.uri and that the volume is mounted "
                     "on every worker");
    return error && error != std::errc::no_such_file_or_directory
               ? absl::ErrnoToStatus(error.value(), message)
               : absl::NotFoundError(absl::StrCat(message, ": no such folder"));
  }
  if (!fs::is_directory(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", path, ": is a file; dataset.uri names the folder that holds it"));
  }
  Found found;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    auto& names = entry->is_directory(ignored) ? found.folders : found.files;
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("dataset ", path, ": cannot list"));
  }
  std::sort(found.files.begin(), found.files.end());
  std::sort(found.folders.begin(), found.folders.end());
  return found;
}

std::string Summary(const std::vector<std::string>& names) {
  if (names.empty()) return "nothing";
  const size_t shown = std::min(names.size(), kNamesInMessages);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + shown, ", "),
      shown < names.size() ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

absl::StatusOr<DatasetFormat> Detect(const std::string& path, const Found& found) {
  if (std::any_of(found.files.begin(), found.files.end(),
                  [](const std::string& name) { return IsIdxImagesName(name); })) {
    return DatasetFormat::kIdx;
  }
  if (!found.folders.empty()) return DatasetFormat::kImageFolder;
  const std::string message = absl::StrCat(
      "dataset ", path, ": no known format; looked for *-images-idx3-ubyte[.gz] (IDX) and for ",
      "sub-folders of pictures, one per class (ImageFolder); found ", Summary(found.files));
  return found.files.empty() ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

absl::Status WrongScheme(const std::string& uri, absl::string_view format) {
  return absl::InvalidArgumentError(
      absl::StrCat("dataset.uri \"", uri, "\" does not go with dataset.format ", format,
                   "; Synthetic takes \"synthetic://\", every other format file:///absolute/path"));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenFolder(const std::string& path, DatasetFormat format,
                                                    const api::DatasetSource& source,
                                                    job::Split split) {
  switch (format) {
    case DatasetFormat::kIdx:
      return OpenIdx(path, source, split);
    case DatasetFormat::kImageFolder:
      return OpenImageFolder(path, source);
    case DatasetFormat::kSynthetic:
      return WrongScheme(source.uri, "Synthetic");
    case DatasetFormat::kAuto:
    case DatasetFormat::kCifar10:
    case DatasetFormat::kTfRecord:
    case DatasetFormat::kRecordIo:
    case DatasetFormat::kWebDataset:
      break;
  }
  return absl::UnimplementedError(absl::StrCat(
      "dataset ", path, ": this version reads Synthetic, IDX and ImageFolder; CIFAR10, TFRecord, ",
      "RecordIO and WebDataset must be converted to one of these"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const api::DatasetSource& source,
                                                     job::Split split, uint64_t seed) {
  const absl::StatusOr<Location> location = ParseUri(source.uri);
  if (!location.ok()) return location.status();
  if (location->scheme == Scheme::kSynthetic) {
    if (source.format == DatasetFormat::kAuto || source.format == DatasetFormat::kSynthetic) {
      return OpenSynthetic(source, split, seed);
    }
    return WrongScheme(source.uri, "other than Synthetic");
  }
  const absl::StatusOr<Found> found = List(location->path);
  if (absl::IsNotFound(found.status()) && source.format == DatasetFormat::kIdx) {
    return absl::NotFoundError(absl::StrCat(found.status().message(), "; ", kIdxFiles));
  }
  if (!found.ok()) return found.status();
  DatasetFormat format = source.format;
  if (format == DatasetFormat::kAuto) {
    const absl::StatusOr<DatasetFormat> detected = Detect(location->path, *found);
    if (!detected.ok()) return detected.status();
    format = *detected;
  }
  return OpenFolder(location->path, format, source, split);
}

}  // namespace hetero::source
