#include "runtime/source/picture_listing.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(const fs::path& path, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path.string(), ": cannot list"));
}

// Of the root.
bool IsHidden(const std::string& name) {
  return absl::StartsWith(name, ".") || name == "lost+found";
}

// Adds the pictures of root/relative and everything below it. A cycle of links ends with the
// system's error for too many links.
absl::Status Walk(const fs::path& root, const std::string& relative,
                  std::vector<PictureFile>* pictures, int64_t* ignored) {
  std::error_code error;
  fs::directory_iterator entry(root / relative, error);
  if (error) return Failed(root / relative, error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (relative.empty() && IsHidden(name)) {
      ++*ignored;
      continue;
    }
    const bool is_folder = entry->is_directory(error);
    if (error == std::errc::too_many_symbolic_link_levels) return Failed(entry->path(), error);
    if (is_folder) {
      const std::string below = relative.empty() ? name : absl::StrCat(relative, "/", name);
      HETERO_RETURN_IF_ERROR(Walk(root, below, pictures, ignored));
    } else if (!IsPictureName(name)) {
      ++*ignored;
    } else {
      const uint64_t size = entry->file_size(error);
      if (error) return Failed(entry->path(), error);
      pictures->push_back({relative, name, size, ""});
    }
  }
  if (error) return Failed(root / relative, error);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClassFolders(const fs::path& root, int64_t* ignored) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(root, error);
  if (error) return Failed(root, error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!IsHidden(name) && entry->is_directory(error)) {
      names.push_back(std::move(name));
    } else {
      ++*ignored;
    }
  }
  if (error) return Failed(root, error);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckClasses(const std::string& root, const std::string& uri,
                          const std::vector<PictureClass>& classes) {
  if (classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        root, ": no class folders; an ImageFolder has one sub-folder of pictures per class"));
  }
  std::vector<std::string> names;
  for (const PictureClass& one : classes) names.push_back(one.name);
  if (AreSplits(names)) {
    return absl::InvalidArgumentError(
        absl::StrCat(root, ": holds splits, not classes; write dataset.uri ", uri,
                     "/train and give the other split under dataset.validation.uri"));
  }
  return absl::OkStatus();
}

// Puts the pictures into their order; there must be some in each class.
absl::Status Finish(const std::string& root, PictureListing* listing) {
  for (PictureClass& one : listing->classes) {
    if (one.pictures.empty() && one.name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          root, ": no .jpg, .jpeg or .png files; add pictures, or correct dataset.uri"));
    }
    if (one.pictures.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(root, "/", one.name, ": class folder without .jpg, .jpeg or .png files; ",
                       "add pictures or remove the folder"));
    }
    std::sort(one.pictures.begin(), one.pictures.end(),
              [](const PictureFile& a, const PictureFile& b) {
                return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
              });
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPictureName(std::string_view name) {
  for (const char* ending : {".jpg", ".jpeg", ".png"}) {
    if (absl::EndsWithIgnoreCase(absl::string_view(name.data(), name.size()), ending)) return true;
  }
  return false;
}

bool FolderHasPictures(const std::string& root, const std::string& folder) {
  constexpr int kEntriesLookedAt = 100;
  std::error_code error;
  fs::directory_iterator entry(fs::path(root) / folder, error);
  for (int i = 0; !error && i < kEntriesLookedAt && entry != fs::directory_iterator();
       ++i, entry.increment(error)) {
    if (IsPictureName(entry->path().filename().string())) return true;
  }
  return false;
}

bool AreSplits(const std::vector<std::string>& folders) {
  static constexpr std::string_view kSplits[] = {"test", "train", "val", "valid", "validation"};
  const auto is_split = [](const std::string& name) {
    return std::find(std::begin(kSplits), std::end(kSplits), name) != std::end(kSplits);
  };
  return std::all_of(folders.begin(), folders.end(), is_split) &&
         std::find(folders.begin(), folders.end(), "train") != folders.end();
}

absl::StatusOr<PictureListing> ListPictures(const std::string& root, bool by_class) {
  PictureListing listing;
  if (by_class) {
    HETERO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ClassFolders(root, &listing.ignored));
    for (const std::string& name : names) listing.classes.push_back({name, {}});
    HETERO_RETURN_IF_ERROR(CheckClasses(root, "file://" + root, listing.classes));
  } else {
    listing.classes.resize(1);
  }
  for (PictureClass& one : listing.classes) {
    HETERO_RETURN_IF_ERROR(Walk(root, one.name, &one.pictures, &listing.ignored));
  }
  HETERO_RETURN_IF_ERROR(Finish(root, &listing));
  return listing;
}

absl::StatusOr<PictureListing> ListPictures(const ShardSource& pictures, bool by_class) {
  HETERO_ASSIGN_OR_RETURN(std::vector<storage::Object> objects, pictures.List());
  const std::string& uri = pictures.store->uri();
  PictureListing listing;
  if (!by_class) listing.classes.resize(1);
  for (storage::Object& object : objects) {
    const std::string& path = object.name;
    if (absl::StartsWith(path, "/") || absl::StrContains(path, "//")) {
      return absl::InvalidArgumentError(
          absl::StrCat(uri, "/", path, ": an empty part between slashes would be a class or a ",
                       "folder without a name; rename the object, or remove it"));
    }
    const size_t first = path.find('/');
    const bool in_folder = first != std::string::npos;
    const std::string top = path.substr(0, first);
    if (IsHidden(top) || (by_class && !in_folder)) {
      ++listing.ignored;
      continue;
    }
    // Sorted by name, byte by byte, objects of one folder need not be neighbours in their class's
    // order, but those of one class are.
    if (by_class && (listing.classes.empty() || listing.classes.back().name != top)) {
      listing.classes.push_back({top, {}});
    }
    const size_t last = path.rfind('/');
    PictureFile file = {in_folder ? path.substr(0, last) : "",
                        in_folder ? path.substr(last + 1) : path,
                        static_cast<uint64_t>(object.size), std::move(object.version)};
    if (IsPictureName(file.name)) {
      listing.classes.back().pictures.push_back(std::move(file));
    } else {
      ++listing.ignored;
    }
  }
  if (by_class) {
    // "a-b/x" stands before "a/x" in a listing, and the class "a" before "a-b".
    std::sort(listing.classes.begin(), listing.classes.end(),
              [](const PictureClass& a, const PictureClass& b) { return a.name < b.name; });
    HETERO_RETURN_IF_ERROR(CheckClasses(uri, uri, listing.classes));
  }
  HETERO_RETURN_IF_ERROR(Finish(uri, &listing));
  return listing;
}

}  // namespace hetero::source
