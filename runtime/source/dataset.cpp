#include "runtime/source/dataset.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
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

// What lies in a dataset's folder.
struct Listing {
  std::vector<std::string> files;    // sorted
  std::vector<std::string> folders;  // sorted
};

absl::StatusOr<Listing> List(const std::string& path) {
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
  Listing found;
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

// A format of folders.
struct Format {
  DatasetFormat format;
  const char* name;  // in the manifest
  // Whether a folder is of this format; asked in the order of kFormats.
  bool (*matches)(const Listing& listing);
  const char* looked_for;  // what `matches` looks at, for messages
  const char* contents;    // what must be there, where a missing folder needs more words; or null
  absl::StatusOr<std::unique_ptr<Dataset>> (*open)(const std::string& folder,
                                                   const api::DatasetSource& source,
                                                   job::Split split, const api::Label& label);
};

bool HasIdxImages(const Listing& listing) {
  return std::any_of(listing.files.begin(), listing.files.end(),
                     [](const std::string& name) { return IsIdxImagesName(name); });
}

bool HasFolders(const Listing& listing) { return !listing.folders.empty(); }

absl::StatusOr<std::unique_ptr<Dataset>> OpenPictures(const std::string& folder,
                                                      const api::DatasetSource& source, job::Split,
                                                      const api::Label& label) {
  return OpenImageFolder(folder, source, label);
}

constexpr Format kFormats[] = {
    {DatasetFormat::kIdx, "IDX", HasIdxImages, "*-images-idx3-ubyte[.gz]", kIdxFiles, OpenIdx},
    {DatasetFormat::kImageFolder, "ImageFolder", HasFolders,
     "sub-folders of pictures, one per class", nullptr, OpenPictures},
};

const Format* FormatOf(DatasetFormat wanted) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& format) { return format.format == wanted; });
  return found == std::end(kFormats) ? nullptr : found;
}

absl::StatusOr<const Format*> Detect(const std::string& path, const Listing& found) {
  std::vector<std::string> looked_for;
  for (const Format& format : kFormats) {
    if (format.matches(found)) return &format;
    looked_for.push_back(absl::StrCat(format.looked_for, " (", format.name, ")"));
  }
  const std::string message =
      absl::StrCat("dataset ", path, ": no known format; looked for ",
                   absl::StrJoin(looked_for, " and for "), "; found ", Summary(found.files));
  return found.files.empty() ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

absl::Status WrongScheme(const std::string& uri, absl::string_view format) {
  return absl::InvalidArgumentError(
      absl::StrCat("dataset.uri \"", uri, "\" does not go with dataset.format ", format,
                   "; Synthetic takes \"synthetic://\", every other format file:///absolute/path"));
}

// Where the manifest's parser knows a format that nothing here reads.
absl::Status NotReadable(const std::string& path) {
  const std::string readable = absl::StrJoin(
      kFormats, ", ",
      [](std::string* text, const Format& format) { absl::StrAppend(text, format.name); });
  return absl::UnimplementedError(
      absl::StrCat("dataset ", path, ": this version reads Synthetic, ", readable,
                   "; data of another format must be converted to one of these"));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenFolder(const std::string& path,
                                                    const api::DatasetSource& source,
                                                    job::Split split, const api::Label& label) {
  const Format* format = FormatOf(source.format);
  const absl::StatusOr<Listing> found = List(path);
  if (absl::IsNotFound(found.status()) && format != nullptr && format->contents != nullptr) {
    return absl::NotFoundError(absl::StrCat(found.status().message(), "; ", format->contents));
  }
  if (!found.ok()) return found.status();
  if (source.format == DatasetFormat::kSynthetic) return WrongScheme(source.uri, "Synthetic");
  if (source.format == DatasetFormat::kAuto) {
    const absl::StatusOr<const Format*> detected = Detect(path, *found);
    if (!detected.ok()) return detected.status();
    format = *detected;
  }
  return format == nullptr ? NotReadable(path) : format->open(path, source, split, label);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const api::DatasetSource& source,
                                                     job::Split split, uint64_t seed,
                                                     const api::Label& label) {
  const absl::StatusOr<Location> location = ParseUri(source.uri);
  if (!location.ok()) return location.status();
  if (location->scheme == Scheme::kFile) return OpenFolder(location->path, source, split, label);
  if (source.format == DatasetFormat::kAuto || source.format == DatasetFormat::kSynthetic) {
    return OpenSynthetic(source, split, seed, label);
  }
  return WrongScheme(source.uri, "other than Synthetic");
}

}  // namespace hetero::source
