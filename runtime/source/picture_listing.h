#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/shard_source.h"

// The files of an ImageFolder. Internal to this folder.
namespace hetero::source {

// Whether a file of this name is a picture: .jpg, .jpeg or .png, in any case.
bool IsPictureName(std::string_view name);

// Whether folders are those of splits, train and val, where classes are looked for: they would open
// as a set of as many classes.
bool AreSplits(const std::vector<std::string>& folders);

// Whether one of the first hundred entries of a folder in `root` is a picture.
bool FolderHasPictures(const std::string& root, const std::string& folder);

struct PictureFile {
  std::string folder;  // relative to the root, without a slash at the end; "" is the root
  std::string name;
  uint64_t size = 0;
  std::string version;  // of an object; empty for a file
};

// One sub-folder of the root that holds the pictures of a class, or all of the root.
struct PictureClass {
  std::string name;                   // empty: all of the root
  std::vector<PictureFile> pictures;  // by folder, then by name
};

struct PictureListing {
  std::vector<PictureClass> classes;  // by name, or one without a name
  int64_t ignored = 0;                // files that are no pictures, and hidden folders
};

// Lists the folder `root`, or what a store holds: with `by_class` the pictures in its sub-folders,
// else all. Links are followed. kInvalidArgument: no class folder, one without pictures, or those
// of the splits; without `by_class` no pictures; an object's name with an empty part.
absl::StatusOr<PictureListing> ListPictures(const std::string& root, bool by_class);
absl::StatusOr<PictureListing> ListPictures(const ShardSource& pictures, bool by_class);

}  // namespace hetero::source
