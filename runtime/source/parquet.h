#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// Parquet files (https://parquet.apache.org/docs/file-format/) of rows that hold a picture each, as
// Hugging Face's datasets writes them. A sample is a row.
//
// The picture is the column image.bytes or image: the bytes of a file, uncompressed and PLAIN, so
// that they lie in one piece. A class is the whole number in the column label; other labels are one
// number in label. Columns of labels may be compressed and have dictionaries: they are read when
// the file is opened.
bool IsParquetName(std::string_view name);

// Whether a file begins as one of this format.
bool BeginsParquet(std::span<const uint8_t> bytes);

// Reads each file's footer, the lengths of its pictures, and its labels. kInvalidArgument: columns
// that are not read so, encryption; kDataLoss: a damaged file. A picture or a label that is null is
// a bad sample when it is read. Where the files name their classes (a ClassLabel of datasets),
// these are the classes, unless numbers are shifted.
absl::StatusOr<std::unique_ptr<Dataset>> OpenParquet(const ShardSource& shards,
                                                     const api::DatasetSource& source,
                                                     job::Split split, const api::Label& label);

}  // namespace hetero::source
