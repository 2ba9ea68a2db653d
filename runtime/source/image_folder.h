#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// Pictures sorted into one sub-folder per class, as torchvision's ImageFolder reads them: classes
// by name, bytewise; inside a class its .jpg, .jpeg and .png files (any case, any depth, links
// followed) by folder, then by name. Other files are ignored and counted in a log line; so are
// sub-folders of the root that start with a dot, and lost+found. Samples are the files' bytes.
// With a `label` that is no class the folder's pictures count wherever they lie in it, ordered in
// the same way, and the labels' numbers stand in metadata.jsonl (picture_numbers.h), or there are
// none. image() is the manifest's, else zero (any size). The fingerprint covers names and sizes (of
// very many pictures the sizes of some: SizeRule), so a folder and a bucket with the same pictures
// are the same dataset.
//
// `root` is the folder's path, or the URI of the store that holds `pictures`, which is null for a
// folder. A store that was not listed is, once. kInvalidArgument: no class folder, an empty one, or
// counts unlike the manifest's.
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const std::string& root,
                                                         const ShardSource& pictures,
                                                         const api::DatasetSource& source,
                                                         const api::Label& label = {});

}  // namespace hetero::source
