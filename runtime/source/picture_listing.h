#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/picture_folder.h"
#include "runtime/source/shard_source.h"

// The files of an ImageFolder. Internal to this folder.
namespace hetero::source {

// Whether a file of this name is a picture: .jpg, .jpeg or .png, in any case.
bool IsPictureName(std::string_view name);

// Whether a folder or file of this name in the root is passed over.
bool IsHiddenInRoot(std::string_view name);

// Whether folders are those of splits, train and val, where classes are looked for: they would open
// as a set of as many classes.
bool AreSplits(const std::vector<std::string>& folders);

// Whether one of the first hundred entries of a folder in `root` is a picture.
bool FolderHasPictures(const std::string& root, const std::string& folder);

// Of which pictures a dataset's identity has the sizes. A folder does not tell them, and to ask the
// system for each of ten million takes longer than all the rest (docs/decisions/0087).
struct SizeRule {
  int64_t of_all_up_to = 2'000'000;  // pictures
  int64_t of_more = 16'384;          // of how many then, at least

  // Those of every so-manyeth picture, from the first on.
  int64_t Step(int64_t pictures) const {
    return pictures <= of_all_up_to ? 1 : std::max<int64_t>(1, pictures / of_more);
  }
};

// One sub-folder of the root that holds the pictures of a class, or all of the root.
struct PictureClass {
  std::string name;                    // empty: all of the root
  std::vector<PictureFolder> folders;  // with pictures; by path
};

struct PictureListing {
  std::vector<PictureClass> classes;  // by name, or one without a name
  int64_t ignored = 0;                // files that are no pictures, and hidden folders
  int64_t size_step = 1;
  std::vector<uint64_t> sizes;  // in bytes, of every size_step-th picture

  // Adds what tells these pictures from others.
  void AddTo(Fingerprint* print) const;
};

// Lists the folder `root`, or what a store holds: with `by_class` the pictures in its sub-folders,
// else all. Links are followed. kInvalidArgument: no class folder, one without pictures, or those
// of the splits; without `by_class` no pictures; an object's name with an empty part.
absl::StatusOr<PictureListing> ListPictures(const std::string& root, bool by_class,
                                            const SizeRule& rule = {});
absl::StatusOr<PictureListing> ListPictures(const ShardSource& pictures, bool by_class,
                                            const SizeRule& rule = {});

}  // namespace hetero::source
