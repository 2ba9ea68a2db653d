#include "runtime/source/dataset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/enums.h"
#include "base/status_macros.h"
#include "runtime/source/cifar.h"
#include "runtime/source/idx.h"
#include "runtime/source/image_folder.h"
#include "runtime/source/manifest.h"
#include "runtime/source/mds.h"
#include "runtime/source/parquet.h"
#include "runtime/source/picture_listing.h"
#include "runtime/source/place.h"
#include "runtime/source/record_io.h"
#include "runtime/source/sample_finder.h"
#include "runtime/source/synthetic.h"
#include "runtime/source/tf_record.h"
#include "runtime/source/uri.h"
#include "runtime/source/web_dataset.h"

namespace hetero::source {
namespace {

using api::DatasetFormat;

constexpr size_t kLookedAt = 4096;     // bytes of a file
constexpr size_t kFilesLookedAt = 16;  // each is a request where they are not on this machine

// What a format is recognised by, and how it is opened.
struct Format {
  DatasetFormat format;
  const char* name;  // in the manifest
  // Whether a place holds this format; asked in the order of kFormats. Errors are the store's.
  absl::StatusOr<bool> (*matches)(const Place& place);
  const char* looked_for;  // what `matches` looks at, for messages
  const char* contents;    // what must be there, where a missing folder needs more words; or null
  // Of what lies under `root`, a folder's path with no store in `files`, or a store's URI; or of
  // shards, which are read from folders as from stores.
  absl::StatusOr<std::unique_ptr<Dataset>> (*open_files)(const std::string& root,
                                                         const ShardSource& files,
                                                         const api::DatasetSource& source,
                                                         job::Split split, const api::Label& label);
  absl::StatusOr<std::unique_ptr<Dataset>> (*open_shards)(const ShardSource& shards,
                                                          const api::DatasetSource& source,
                                                          job::Split split,
                                                          const api::Label& label);
  bool indexed = false;  // where its samples lie is found by a SampleFinder
};

absl::StatusOr<bool> HasIdxImages(const Place& place) {
  return std::any_of(place.files.begin(), place.files.end(),
                     [](const std::string& name) { return IsIdxImagesName(name); });
}

absl::StatusOr<bool> HasFolders(const Place& place) {
  return std::any_of(place.folders.begin(), place.folders.end(), [](const std::string& name) {
    return !absl::StartsWith(name, ".") && name != "lost+found" && !IsCifar10Folder(name) &&
           !IsCifar100Folder(name);
  });
}

bool HasPictures(const Place& place) {
  return std::any_of(place.files.begin(), place.files.end(),
                     [](const std::string& name) { return IsPictureName(name); });
}

template <bool (*is_name)(std::string_view)>
absl::StatusOr<bool> HasFile(const Place& place) {
  return std::any_of(place.files.begin(), place.files.end(),
                     [](const std::string& name) { return name.front() != '.' && is_name(name); });
}

// The folder that a published archive unpacks to, beside no others.
template <bool (*is_folder)(std::string_view)>
absl::StatusOr<bool> HasCifarFolder(const Place& place) {
  HETERO_ASSIGN_OR_RETURN(const bool has_others, HasFolders(place));
  if (has_others) return false;
  const auto has = [&](bool (*is_it)(std::string_view)) {
    return std::any_of(place.folders.begin(), place.folders.end(),
                       [&](const std::string& name) { return is_it(name); });
  };
  if (has(IsCifar10Folder) && has(IsCifar100Folder)) {
    return absl::InvalidArgumentError(absl::StrCat("dataset ", place.uri,
                                                   ": has both, CIFAR-10 and CIFAR-100; set ",
                                                   "dataset.format to CIFAR10 or CIFAR100"));
  }
  return has(is_folder);
}

absl::StatusOr<bool> HasMdsIndex(const Place& place) {
  if (std::find(place.files.begin(), place.files.end(), kMdsIndex) == place.files.end()) {
    return false;
  }
  HETERO_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes,
                          place.FirstBytesOf(kMdsIndex, kLookedAt));
  return IsMdsIndex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Whether one of a few files begins so. For formats whose files have many names.
template <bool (*begins)(std::span<const uint8_t>)>
absl::StatusOr<bool> FileBegins(const Place& place) {
  size_t looked = 0;
  for (const std::string& name : place.files) {
    if (name.front() == '.' || name.front() == '_') continue;
    HETERO_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, place.FirstBytesOf(name, kLookedAt));
    if (begins(bytes)) return true;
    if (++looked == kFilesLookedAt) break;
  }
  return false;
}

absl::StatusOr<bool> HasRecordIo(const Place& place) {
  HETERO_ASSIGN_OR_RETURN(const bool named, HasFile<IsRecordIoName>(place));
  if (!named) return false;
  return FileBegins<BeginsRecordIo>(place);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenPictures(const std::string& root,
                                                      const ShardSource& files,
                                                      const api::DatasetSource& source, job::Split,
                                                      const api::Label& label) {
  return OpenImageFolder(root, files, source, label);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxFiles(const std::string& root,
                                                      const ShardSource& files,
                                                      const api::DatasetSource& source,
                                                      job::Split split, const api::Label& label) {
  return OpenIdx(root, files.store.get(), source, split, label);
}

absl::StatusOr<bool> HasParquet(const Place& place) {
  HETERO_ASSIGN_OR_RETURN(const bool named, HasFile<IsParquetName>(place));
  if (!named) return false;
  return FileBegins<BeginsParquet>(place);
}

// What was an ImageFolder before there were formats of shards is one still: they stand behind it,
// but for the one that an index tells. In stores, which no ImageFolder was read from then, it is
// the last one: shards may have folders of other things beside them (Detect()).
constexpr Format kFormats[] = {
    {DatasetFormat::kIdx, "IDX", HasIdxImages, "*-images-idx3-ubyte[.gz]", kIdxFiles, OpenIdxFiles},
    {DatasetFormat::kMds, "MDS", HasMdsIndex, "index.json with shards", nullptr, nullptr, OpenMds},
    {DatasetFormat::kImageFolder, "ImageFolder", HasFolders,
     "sub-folders of pictures, one per class", nullptr, OpenPictures},
    {DatasetFormat::kCifar10, "CIFAR10", HasFile<IsCifar10Name>, "data_batch_1.bin", nullptr,
     nullptr, OpenCifar10},
    {DatasetFormat::kCifar100, "CIFAR100", HasFile<IsCifar100Name>, "train.bin", nullptr, nullptr,
     OpenCifar100},
    {DatasetFormat::kWebDataset, "WebDataset", HasFile<IsWebDatasetName>, "*.tar", nullptr, nullptr,
     OpenWebDataset, true},
    {DatasetFormat::kRecordIo, "RecordIO", HasRecordIo, "*.rec", nullptr, nullptr, OpenRecordIo,
     true},
    {DatasetFormat::kParquet, "Parquet", HasParquet, "*.parquet", nullptr, nullptr, OpenParquet},
    {DatasetFormat::kTfRecord, "TFRecord", FileBegins<BeginsTfRecord>,
     "files that begin with a record", nullptr, nullptr, OpenTfRecord, true},
    {DatasetFormat::kCifar10, "CIFAR10", HasCifarFolder<IsCifar10Folder>, "cifar-10-batches-bin",
     nullptr, nullptr, OpenCifar10},
    {DatasetFormat::kCifar100, "CIFAR100", HasCifarFolder<IsCifar100Folder>, "cifar-100-binary",
     nullptr, nullptr, OpenCifar100},
};

const Format* FormatOf(DatasetFormat wanted) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& format) { return format.format == wanted; });
  return found == std::end(kFormats) ? nullptr : found;
}

absl::StatusOr<const Format*> Detect(const Place& place) {
  std::vector<std::string> looked_for;
  const Format* folders = nullptr;
  for (const Format& format : kFormats) {
    HETERO_ASSIGN_OR_RETURN(const bool matches, format.matches(place));
    looked_for.push_back(absl::StrCat(format.looked_for, " (", format.name, ")"));
    if (!matches) continue;
    if (!place.folder.empty() || format.format != DatasetFormat::kImageFolder) return &format;
    folders = &format;
  }
  if (folders != nullptr) return folders;
  // All of one folder, for labels that are no classes; of classes it says what is missing.
  if (HasPictures(place)) return FormatOf(DatasetFormat::kImageFolder);
  const std::string& where = place.folder.empty() ? place.uri : place.folder;
  const std::string message =
      absl::StrCat("dataset ", where, ": no known format; looked for ",
                   absl::StrJoin(looked_for, " and for "), "; found ", SummaryOf(place.files));
  return place.files.empty() ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

absl::Status WrongScheme(const std::string& uri, absl::string_view format) {
  return absl::InvalidArgumentError(
      absl::StrCat("dataset.uri \"", uri, "\" does not go with dataset.format ", format,
                   "; Synthetic takes \"synthetic://\", every other format file:///absolute/path "
                   "or s3://bucket/prefix, shards and manifests also https://host/path"));
}

// A manifest is one object, and no place where others lie.
absl::StatusOr<bool> IsManifest(const std::string& uri, const StoreOpener& open,
                                const api::DatasetSource& source) {
  if (source.format == DatasetFormat::kAuto) return HasManifest(uri, open, source);
  return source.format == DatasetFormat::kManifest;
}

absl::Status NoIndex(const api::DatasetSource& source, absl::string_view format) {
  return absl::InvalidArgumentError(
      absl::StrCat("dataset ", source.uri, ": ", format,
                   " needs no index, it says itself where its samples lie; remove dataset.index"));
}

absl::Status CheckFields(const api::DatasetSource& source, const Format& format) {
  if (format.open_shards != nullptr || source.fields == api::SampleFields()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset ", source.uri, ": ", format.name,
                                                 " has no fields of its own names; remove "
                                                 "dataset.fields"));
}

// What a web server has is read where its files are named: it lists none.
absl::Status CheckOnTheWeb(const api::DatasetSource& source, const Format* format) {
  const bool by_index = source.format == DatasetFormat::kMds;
  const bool of_shards = format == nullptr || format->open_shards != nullptr;
  if (of_shards && NamesFiles(source.uri)) {
    if (source.uri.find('%', source.uri.rfind('/')) == std::string::npos) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("dataset.uri \"", source.uri,
                     "\": write the files' names as they are, with no character escaped by \"%\""));
  }
  if (by_index) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dataset.uri \"", source.uri,
                   "\": a web server lists nothing. Name the files, as in "
                   "https://host/train-{000..127}.tar, the folder of an MDS dataset (format: MDS) "
                   "or a manifest"));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenAsDeclared(
    const std::string& uri, const storage::Stores& stores, const api::DatasetSource& source,
    job::Split split, const api::Label& label, std::shared_ptr<const SampleFinder> finder) {
  const StoreOpener open = OpenerOf(stores);
  HETERO_ASSIGN_OR_RETURN(const bool is_manifest, IsManifest(uri, open, source));
  if (is_manifest && source.index) return NoIndex(source, "Manifest");
  if (is_manifest) return OpenManifest(uri, open, source, label);
  const Format* format = FormatOf(source.format);
  if (IsWebUri(uri)) HETERO_RETURN_IF_ERROR(CheckOnTheWeb(source, format));
  const absl::StatusOr<Place> place =
      OpenPlace(uri, stores, /*look=*/source.format == DatasetFormat::kAuto);
  if (absl::IsNotFound(place.status()) && format != nullptr && format->contents != nullptr) {
    return absl::NotFoundError(absl::StrCat(place.status().message(), "; ", format->contents));
  }
  if (!place.ok()) return place.status();
  if (source.format == DatasetFormat::kSynthetic) return WrongScheme(source.uri, "Synthetic");
  if (source.format == DatasetFormat::kAuto) {
    HETERO_ASSIGN_OR_RETURN(format, Detect(*place));
  }
  HETERO_RETURN_IF_ERROR(CheckFields(source, *format));
  if (source.index && !format->indexed) return NoIndex(source, format->name);
  if (format->open_shards != nullptr) {
    ShardSource shards = place->shards;
    shards.finder = std::move(finder);
    return format->open_shards(shards, source, split, label);
  }
  if (!place->shards.names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset.uri \"", source.uri, "\": ", format->name,
                     " is a folder; name it without ranges and files"));
  }
  if (!place->folder.empty()) return format->open_files(place->folder, {}, source, split, label);
  return format->open_files(place->shards.store->uri(), place->shards, source, split, label);
}

// Whether there are pictures in one of the first folders: other formats may have folders, too.
bool HasPicturesInFolders(const Place& place) {
  constexpr size_t kFoldersLookedAt = 8;
  if (place.folder.empty()) {
    const auto& objects = *place.shards.listed;
    return std::any_of(objects.begin(), objects.end(), [](const storage::Object& object) {
      return object.name.find('/') != std::string::npos && IsPictureName(object.name);
    });
  }
  const size_t count = std::min(kFoldersLookedAt, place.folders.size());
  return std::any_of(
      place.folders.begin(), place.folders.begin() + static_cast<std::ptrdiff_t>(count),
      [&](const std::string& name) { return FolderHasPictures(place.folder, name); });
}

// Which other format than the declared one is there; nothing where that is there, or none is.
std::optional<DatasetFormat> OtherFormatAt(const std::string& uri, const storage::Stores& stores,
                                           const api::DatasetSource& source) {
  api::DatasetSource any = source;
  any.format = DatasetFormat::kAuto;
  const absl::StatusOr<bool> is_manifest = IsManifest(uri, OpenerOf(stores), any);
  if (!is_manifest.ok() || (*is_manifest && source.format == DatasetFormat::kManifest)) {
    return std::nullopt;
  }
  if (*is_manifest) return DatasetFormat::kManifest;
  const absl::StatusOr<Place> place = OpenPlace(uri, stores, /*look=*/true);
  if (!place.ok()) return std::nullopt;
  for (const Format& format : kFormats) {
    if (format.format != source.format) continue;
    const absl::StatusOr<bool> matches = format.matches(*place);
    if (!matches.ok() || *matches) return std::nullopt;
  }
  const absl::StatusOr<const Format*> found = Detect(*place);
  if (!found.ok() || (*found)->format == source.format) return std::nullopt;
  if ((*found)->format == DatasetFormat::kImageFolder && !HasPicturesInFolders(*place)) {
    return std::nullopt;
  }
  return (*found)->format;
}

// A format that is not there is told with the one that is. A web server lists nothing.
absl::StatusOr<std::unique_ptr<Dataset>> OpenPlaced(const std::string& uri,
                                                    const storage::Stores& stores,
                                                    const api::DatasetSource& source,
                                                    job::Split split, const api::Label& label,
                                                    std::shared_ptr<const SampleFinder> finder) {
  absl::StatusOr<std::unique_ptr<Dataset>> opened =
      OpenAsDeclared(uri, stores, source, split, label, std::move(finder));
  const absl::Status& status = opened.status();
  const bool may_be_another =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsDataLoss(status);
  if (!may_be_another || source.format == DatasetFormat::kAuto || IsWebUri(uri)) return opened;
  const std::optional<DatasetFormat> other = OtherFormatAt(uri, stores, source);
  if (!other) return opened;
  const std::string name(api::NameOf(*other));
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; what is there looks like ", name,
                                   ": set dataset.format to ", name, ", or leave it out"));
}

std::string UriOf(const Location& location, const api::DatasetSource& source) {
  return location.scheme == Scheme::kFile ? absl::StrCat("file://", location.path) : source.uri;
}

}  // namespace

std::vector<Dataset::Run> Dataset::RunsOf(const std::vector<int64_t>& ids) const {
  std::vector<Run> runs;
  runs.reserve(ids.size());
  for (const int64_t id : ids) runs.push_back({.ids = {id}});
  return runs;
}

std::vector<absl::Status> Dataset::ReadRun(absl::Span<const int64_t> ids,
                                           absl::Span<RawSample> samples) const {
  std::vector<absl::Status> statuses;
  statuses.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) statuses.push_back(Read(ids[i], &samples[i]));
  return statuses;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const api::DatasetSource& source,
                                                     job::Split split, uint64_t seed,
                                                     const api::Label& label,
                                                     const std::vector<api::StorageAccess>& storage,
                                                     std::shared_ptr<const SampleFinder> finder) {
  HETERO_ASSIGN_OR_RETURN(const Location location, ParseUri(source.uri));
  if (location.scheme != Scheme::kSynthetic) {
    const storage::Stores stores(storage);
    if (finder == nullptr) finder = FinderOf(source, label, stores);
    return OpenPlaced(UriOf(location, source), stores, source, split, label, std::move(finder));
  }
  if (source.index) return NoIndex(source, "Synthetic");
  if (source.format == DatasetFormat::kAuto || source.format == DatasetFormat::kSynthetic) {
    return OpenSynthetic(source, split, seed, label);
  }
  return WrongScheme(source.uri, "other than Synthetic");
}

absl::StatusOr<api::DatasetFormat> DetectFormat(const api::DatasetSource& source,
                                                const std::vector<api::StorageAccess>& storage) {
  if (source.format != DatasetFormat::kAuto) return source.format;
  HETERO_ASSIGN_OR_RETURN(const Location location, ParseUri(source.uri));
  if (location.scheme == Scheme::kSynthetic) return DatasetFormat::kSynthetic;
  const std::string uri = UriOf(location, source);
  const storage::Stores stores(storage);
  HETERO_ASSIGN_OR_RETURN(const bool is_manifest, IsManifest(uri, OpenerOf(stores), source));
  if (is_manifest) return DatasetFormat::kManifest;
  HETERO_ASSIGN_OR_RETURN(const Place place, OpenPlace(uri, stores, /*look=*/true));
  HETERO_ASSIGN_OR_RETURN(const Format* const format, Detect(place));
  return format->format;
}

}  // namespace hetero::source
