#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/sample_table.h"
#include "runtime/storage/file_descriptor.h"
#include "runtime/storage/store.h"
#include "runtime/storage/writable_store.h"

// An index: a file that says where the samples of a dataset of shards lie.
//
//   bytes 0-7    "heteroix"
//   8-11         version, 1
//   12-15        length of the description
//   16-23        number of samples
//   24-27        CRC32C of bytes 0-23 and of the description
//   28-31        CRC32C of the table
//   then         the description, JSON: {"format": "TFRecord", "rule": "image ..., label ...",
//                "shards": [{"name": "train-00000", "size": 1234, "version": "\"0af3\""}, ...]},
//                with spaces behind it up to a multiple of 8
//   then         the table: one SampleLocation for each sample
//
// Numbers are little-endian. The same dataset gives the same bytes.
namespace hetero::source {

// Whose samples an index locates.
struct IndexedShards {
  std::string format;  // in the manifest: "TFRecord"
  std::string rule;    // SampleRule::Text()
  std::vector<storage::Object> shards;
};

absl::Status WriteIndex(const IndexedShards& shards, absl::Span<const SampleLocation> samples,
                        storage::ObjectWriter& out);

inline constexpr int64_t kIndexHead = 32;  // bytes

// Whether an object of `size` bytes that begins with `head` can be an index: by the first bytes, of
// which there are kIndexHead where it has so many, and by the lengths that they say.
// kInvalidArgument with `where`: it is none.
absl::Status CheckIndexHead(absl::Span<const uint8_t> head, int64_t size, const std::string& where);

// The table of the index in `file`. `where` names it in messages, `dataset` the dataset that
// `shards` are of, and `command` makes it again. kInvalidArgument: it is no index; kDataLoss: it is
// damaged; kFailedPrecondition: it was made of other shards, of other versions of them, for other
// fields, or by another version of this program; the message says which, and how to make another
// one.
absl::StatusOr<SampleTable> ReadIndex(storage::FileDescriptor file, const std::string& where,
                                      const std::string& command, const std::string& dataset,
                                      const IndexedShards& shards);

}  // namespace hetero::source
