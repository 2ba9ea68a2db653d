#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// MosaicML's streaming format (https://github.com/mosaicml/streaming), version 2: index.json lists
// the shards, and each begins with how many samples it has and where they lie. A sample is the
// sizes of its columns of varying size, then all columns.
//
// The picture is the column image, jpg, jpeg or png, with the encoding jpeg, png or bytes; a class
// is the whole number in class, label or cls; other labels are in label, as a number or as
// ndarray:TYPE:SHAPE.
inline constexpr char kMdsIndex[] = "index.json";

// Whether an index.json is one of this format.
bool IsMdsIndex(std::string_view text);

// Reads the index and each shard's table. Shards that are compressed with Zstandard are read whole
// (UnpackedShards). kInvalidArgument: other compression, compressed shards of more than 256 MiB,
// columns of encodings that are not read (pkl runs code) or that differ between shards; kDataLoss:
// a shard that is damaged or not the index's. Where the manifest does not declare `classes`, the
// samples are looked into for the highest label.
absl::StatusOr<std::unique_ptr<Dataset>> OpenMds(const ShardSource& shards,
                                                 const api::DatasetSource& source, job::Split split,
                                                 const api::Label& label);

}  // namespace hetero::source
