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
#include "runtime/source/in_parallel.h"
#include "runtime/source/picture_walk.h"

namespace hetero::source {
namespace {

namespace fs = std::filesystem;

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

// There must be some in each class.
absl::Status CheckPictures(const std::string& root, const PictureListing& listing) {
  for (const PictureClass& one : listing.classes) {
    if (one.folders.empty() && one.name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          root, ": no .jpg, .jpeg or .png files; add pictures, or correct dataset.uri"));
    }
    if (one.folders.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(root, "/", one.name, ": class folder without .jpg, .jpeg or .png files; ",
                       "add pictures or remove the folder"));
    }
  }
  return absl::OkStatus();
}

// What the folders in `root` do not say is asked for.
absl::Status TakeSizes(const std::string& root, const SizeRule& rule, PictureListing* listing) {
  struct Part {
    const PictureFolder* folder;
    int64_t first;  // of all pictures
  };
  std::vector<Part> parts;
  int64_t all = 0;
  for (const PictureClass& one : listing->classes) {
    for (const PictureFolder& folder : one.folders) {
      parts.push_back({&folder, all});
      all += static_cast<int64_t>(folder.names.size());
    }
  }
  const int64_t step = rule.Step(all);
  listing->size_step = step;
  listing->sizes.resize(static_cast<size_t>((all + step - 1) / step));
  return InParallel(parts.size(), [&](size_t part) -> absl::Status {
    const auto& [folder, first] = parts[part];
    const auto count = static_cast<int64_t>(folder->names.size());
    for (int64_t i = (step - first % step) % step; i < count; i += step) {
      uint64_t& size = listing->sizes[static_cast<size_t>((first + i) / step)];
      const auto index = static_cast<size_t>(i);
      if (!folder->sizes.empty()) {
        size = folder->sizes[index];
      } else {
        HETERO_ASSIGN_OR_RETURN(size,
                                SizeOfPicture(absl::StrCat(root, "/", folder->PathOf(index))));
      }
    }
    return absl::OkStatus();
  });
}

// An object that is a picture; views of its name.
struct PictureObject {
  std::string_view folder;
  std::string_view name;
  const storage::Object* object;
};

// Of one class, in any order. False: there are more than a folder holds.
bool AddFolders(std::vector<PictureObject>& pictures, std::vector<PictureFolder>* folders) {
  std::sort(pictures.begin(), pictures.end(), [](const PictureObject& a, const PictureObject& b) {
    return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
  });
  for (const PictureObject& picture : pictures) {
    if (folders->empty() || folders->back().path != picture.folder) {
      folders->emplace_back().path = picture.folder;
    }
    PictureFolder& folder = folders->back();
    folder.sizes.push_back(static_cast<uint64_t>(picture.object->size));
    if (!folder.names.Add(picture.name) || !folder.versions.Add(picture.object->version)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool IsPictureName(std::string_view name) {
  for (const char* ending : {".jpg", ".jpeg", ".png"}) {
    if (absl::EndsWithIgnoreCase(absl::string_view(name.data(), name.size()), ending)) return true;
  }
  return false;
}

bool IsHiddenInRoot(std::string_view name) { return name.starts_with(".") || name == "lost+found"; }

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

void PictureListing::AddTo(Fingerprint* print) const {
  int64_t id = 0;
  for (const PictureClass& one : classes) {
    for (const PictureFolder& folder : one.folders) {
      for (size_t i = 0; i < folder.names.size(); ++i, ++id) {
        print->Add(folder.path);
        print->Add(folder.names[i]);
        if (id % size_step == 0) print->Add(sizes[static_cast<size_t>(id / size_step)]);
      }
    }
  }
}

absl::StatusOr<PictureListing> ListPictures(const std::string& root, bool by_class,
                                            const SizeRule& rule) {
  PictureListing listing;
  std::vector<ClassFolder> folders = {{}};
  if (by_class) {
    HETERO_ASSIGN_OR_RETURN(folders, ListClassFolders(root, &listing.ignored));
  }
  for (const ClassFolder& folder : folders) listing.classes.push_back({folder.name, {}});
  if (by_class) HETERO_RETURN_IF_ERROR(CheckClasses(root, "file://" + root, listing.classes));
  HETERO_RETURN_IF_ERROR(WalkPictures(root, folders, rule.of_all_up_to, &listing));
  HETERO_RETURN_IF_ERROR(CheckPictures(root, listing));
  HETERO_RETURN_IF_ERROR(TakeSizes(root, rule, &listing));
  for (PictureClass& one : listing.classes) {
    for (PictureFolder& folder : one.folders) folder.sizes = {};
  }
  return listing;
}

absl::StatusOr<PictureListing> ListPictures(const ShardSource& pictures, bool by_class,
                                            const SizeRule& rule) {
  HETERO_ASSIGN_OR_RETURN(const std::vector<storage::Object> objects, pictures.List());
  const std::string& uri = pictures.store->uri();
  PictureListing listing;
  if (!by_class) listing.classes.resize(1);
  std::vector<PictureObject> found;  // of the last class
  const auto close_class = [&]() -> absl::Status {
    if (listing.classes.empty() || AddFolders(found, &listing.classes.back().folders)) {
      found.clear();
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        uri, "/", listing.classes.back().name,
        ": the names of a folder's pictures have more than 4 GiB; put them into ", "sub-folders"));
  };
  for (const storage::Object& object : objects) {
    const std::string_view path = object.name;
    if (absl::StartsWith(object.name, "/") || absl::StrContains(object.name, "//")) {
      return absl::InvalidArgumentError(
          absl::StrCat(uri, "/", object.name, ": an empty part between slashes would be a class ",
                       "or a folder without a name; rename the object, or remove it"));
    }
    const size_t first = path.find('/');
    const bool in_folder = first != std::string_view::npos;
    const std::string_view top = path.substr(0, first);
    if (IsHiddenInRoot(top) || (by_class && !in_folder)) {
      ++listing.ignored;
      continue;
    }
    // Sorted by name, byte by byte, objects of one folder need not be neighbours in their class's
    // order, but those of one class are.
    if (by_class && (listing.classes.empty() || listing.classes.back().name != top)) {
      HETERO_RETURN_IF_ERROR(close_class());
      listing.classes.push_back({std::string(top), {}});
    }
    const size_t last = path.rfind('/');
    const PictureObject picture = {in_folder ? path.substr(0, last) : std::string_view(),
                                   in_folder ? path.substr(last + 1) : path, &object};
    if (IsPictureName(picture.name)) {
      found.push_back(picture);
    } else {
      ++listing.ignored;
    }
  }
  HETERO_RETURN_IF_ERROR(close_class());
  if (by_class) {
    // "a-b/x" stands before "a/x" in a listing, and the class "a" before "a-b".
    std::sort(listing.classes.begin(), listing.classes.end(),
              [](const PictureClass& a, const PictureClass& b) { return a.name < b.name; });
    HETERO_RETURN_IF_ERROR(CheckClasses(uri, uri, listing.classes));
  }
  HETERO_RETURN_IF_ERROR(CheckPictures(uri, listing));
  HETERO_RETURN_IF_ERROR(TakeSizes(uri, rule, &listing));
  return listing;
}

}  // namespace hetero::source
