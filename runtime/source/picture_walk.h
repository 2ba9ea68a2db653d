#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/picture_listing.h"

// Pictures in folders of this machine. Internal to this folder.
namespace hetero::source {

// A folder of a class, in the root.
struct ClassFolder {
  std::string name;
  bool link = false;  // it is a link to one
};

// Those in `root`, by name. Adds to `ignored` what else there is. The system's error where a link
// cannot be followed though it may lead somewhere.
absl::StatusOr<std::vector<ClassFolder>> ListClassFolders(const std::string& root,
                                                          int64_t* ignored);

// Adds the pictures in `classes`, which are those of the listing, and below them; in the root where
// its only class has no name. Several folders are read at a time. They have their sizes unless
// there seem to be more than `most_sizes` pictures.
//
// Links are followed; one that leads nowhere and has no picture's name is passed over.
// kInvalidArgument: a link leads back to a folder that it lies in, a picture is no file. The
// system's error: something cannot be looked at. kResourceExhausted: the names of one folder have
// more than 4 GiB.
absl::Status WalkPictures(const std::string& root, const std::vector<ClassFolder>& classes,
                          int64_t most_sizes, PictureListing* listing);

// The size of a picture, in bytes; links are followed. An error where it is no file.
absl::StatusOr<uint64_t> SizeOfPicture(const std::string& path);

}  // namespace hetero::source
