#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/source/dataset.h"
#include "runtime/source/shard_source.h"

namespace hetero::source {

// TFRecord files of tf.train.Example
// (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details): the length as
// a little-endian word of 64 bits, its masked CRC32C, so many bytes, their masked CRC32C.
//
// The picture is the feature image/encoded or image, a class the one number in image/class/label or
// label, other labels the numbers in label.
bool IsTfRecordName(std::string_view name);

// Whether a file begins with a record's length and its checksum.
bool BeginsTfRecord(std::span<const uint8_t> bytes);

// Goes through the lengths of all records, and where `classes` is not declared through the records:
// those of the highest label are counted. A record whose checksum or Example is bad is a bad sample
// when it is read; the first one must have the fields that are wanted. A bad length ends a file:
// kDataLoss with file and byte.
absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecord(const ShardSource& shards,
                                                      const api::DatasetSource& source,
                                                      job::Split split, const api::Label& label);

}  // namespace hetero::source
