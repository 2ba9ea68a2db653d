#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// RecordIO files of pictures, as MXNet packs them
// (https://mxnet.apache.org/versions/1.9.1/api/architecture/note_data_loading): a magic word, a
// word of flag and length, so many bytes, filled up to whole words. A record that holds the magic
// word itself lies there in several parts, without that word. In it an IRHeader, its labels where
// it has several, and the picture.
//
// Samples are in the order of the file, whatever an .idx beside it says. A class is the one label,
// a whole number; labels of type Float32 are all of them.
bool IsRecordIoName(std::string_view name);

// Whether a file begins with a record.
bool BeginsRecordIo(std::span<const uint8_t> bytes);

// Goes through all records. kDataLoss with file and byte: it is cut short or damaged;
// kInvalidArgument: it is none, or dataset.fields names what has no name here.
absl::StatusOr<std::unique_ptr<Dataset>> OpenRecordIo(const ShardSource& shards,
                                                      const api::DatasetSource& source,
                                                      job::Split split, const api::Label& label);

}  // namespace hetero::source
