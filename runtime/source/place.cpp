#include "runtime/source/place.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/source/uri.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

// What lies in a folder of this machine; unlike a store's, this list does not go below it, where
// millions of pictures may be.
absl::Status ListFolder(Place* place) {
  const std::string& path = place->folder;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const std::string message =
        absl::StrCat("dataset ", path,
                     ": cannot be opened; check dataset.uri and that the volume is mounted "
                     "on every worker");
    return error && error != std::errc::no_such_file_or_directory
               ? absl::ErrnoToStatus(error.value(), message)
               : absl::NotFoundError(absl::StrCat(message, ": no such folder or file"));
  }
  if (!fs::is_directory(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset ", path,
        ": is a file; dataset.uri names the folder that holds it, or a manifest: JSON lines, "
        "a JSON list or a table of pictures' paths (format: Manifest)"));
  }
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    auto& names = entry->is_directory(ignored) ? place->folders : place->files;
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("dataset ", path, ": cannot list"));
  }
  std::sort(place->files.begin(), place->files.end());
  std::sort(place->folders.begin(), place->folders.end());
  return absl::OkStatus();
}

absl::Status ListStore(Place* place) {
  HETERO_ASSIGN_OR_RETURN(std::vector<storage::Object> objects, place->shards.store->List(""));
  place->shards.listed = std::make_shared<const std::vector<storage::Object>>(std::move(objects));
  std::set<std::string> folders;
  for (const storage::Object& object : *place->shards.listed) {
    const size_t slash = object.name.find('/');
    if (slash == std::string::npos) {
      place->files.push_back(object.name);
    } else {
      folders.insert(object.name.substr(0, slash));
    }
  }
  place->folders.assign(folders.begin(), folders.end());
  return absl::OkStatus();
}

// What a URI names: files by a range, one file, or a folder.
absl::StatusOr<NamedFiles> FilesOf(const std::string& uri, const storage::Stores& stores) {
  HETERO_ASSIGN_OR_RETURN(NamedFiles named, ExpandRanges(uri));
  if (!named.names.empty()) return named;
  std::optional<NamedFiles> one = AsOneFile(uri);
  if (!one) return named;
  absl::string_view path = uri;
  if (absl::ConsumePrefix(&path, "file://")) {
    std::error_code ignored;
    return fs::is_regular_file(std::string(path), ignored) ? *std::move(one) : named;
  }
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Store> store, stores.Open(one->folder));
  const absl::Status is_there = store->Head(one->names.front()).status();
  if (is_there.ok()) return *std::move(one);
  if (!absl::IsNotFound(is_there) || IsWebUri(uri)) return is_there;
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Store> folder, stores.Open(uri));
  HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects, folder->List(""));
  if (!objects.empty()) return named;
  return absl::NotFoundError(absl::StrCat("dataset ", uri,
                                          ": there is no such object, and nothing below it as a "
                                          "folder; correct dataset.uri"));
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> Place::FirstBytesOf(const std::string& file,
                                                         size_t size) const {
  const absl::StatusOr<storage::Object> object = shards.store->Head(file);
  if (absl::IsNotFound(object.status())) return std::vector<uint8_t>();
  HETERO_RETURN_IF_ERROR(object.status());
  std::vector<uint8_t> bytes(std::min(size, static_cast<size_t>(object->size)));
  HETERO_RETURN_IF_ERROR(shards.store->Read(*object, 0, absl::MakeSpan(bytes)));
  return bytes;
}

absl::StatusOr<Place> OpenPlace(const std::string& uri, const storage::Stores& stores, bool look) {
  HETERO_ASSIGN_OR_RETURN(const NamedFiles named, FilesOf(uri, stores));
  Place place;
  place.uri = named.folder;
  while (absl::EndsWith(place.uri, "/") && !absl::EndsWith(place.uri, "//")) place.uri.pop_back();
  absl::string_view path = place.uri;
  if (absl::ConsumePrefix(&path, "file://")) {
    place.folder = path.empty() ? "/" : std::string(path);
    HETERO_RETURN_IF_ERROR(ListFolder(&place));
  }
  HETERO_ASSIGN_OR_RETURN(place.shards.store,
                          stores.Open(place.folder.empty() ? place.uri : "file://" + place.folder));
  if (!named.names.empty()) {
    place.files = named.names;
    place.folders.clear();
    place.shards.names = named.names;
  } else if (look && place.folder.empty()) {
    HETERO_RETURN_IF_ERROR(ListStore(&place));
  }
  return place;
}

}  // namespace hetero::source
