#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/hetero_training_job.h"
#include "runtime/local/pack.h"
#include "runtime/local/pack_record.h"
#include "runtime/source/dataset.h"
#include "runtime/storage/writable_store.h"

// The kinds of shards that samples are packed into. Internal to pack.
namespace hetero::local {

// One shard on its way into a store. Of one thread.
class PackShard {
 public:
  PackShard(std::string name, std::unique_ptr<storage::ObjectWriter> writer);
  virtual ~PackShard() = default;

  // Of the shard, if it was closed now.
  virtual int64_t bytes() const = 0;
  // A packable sample.
  absl::Status Add(int64_t id, const source::RawSample& sample);
  // Once. kCancelled: stopped, and there is no such object.
  absl::StatusOr<std::pair<PackedShard, storage::Object>> Close(const std::stop_token& stop);

 protected:
  virtual absl::Status Put(int64_t id, const source::RawSample& sample) = 0;
  // Appends what is not there yet.
  virtual absl::Status Finish(const std::stop_token& stop) = 0;

  absl::Status Append(absl::Span<const uint8_t> bytes);
  int64_t appended() const { return shard_.bytes; }

 private:
  const std::unique_ptr<storage::ObjectWriter> writer_;
  PackedShard shard_;
};

// How one kind names and makes its shards.
class PackFormat {
 public:
  virtual ~PackFormat() = default;

  virtual std::string ShardName(size_t number) const = 0;
  virtual bool IsShard(const std::string& name) const = 0;
  // Whose names are in the order of their numbers.
  virtual size_t most_shards() const = 0;
  // That one shard can have, however few samples are in it.
  virtual int64_t most_shard_bytes() const = 0;
  virtual std::unique_ptr<PackShard> Begin(std::string name,
                                           std::unique_ptr<storage::ObjectWriter> writer) const = 0;
  // By how much a packable sample makes a shard longer.
  virtual int64_t BytesOf(const source::RawSample& sample) const = 0;
  // The object that makes a dataset of the shards, written when all are there. Empty: none does.
  virtual std::string index_name() const { return ""; }
  virtual std::string Index(const std::vector<PackedShard>&) const { return ""; }
};

// NNNNNNNNN.jpg or .png with the picture, and .cls with a class or .json with other labels.
std::unique_ptr<PackFormat> PackWebDataset(const api::Label& label);
// The columns image (bytes) and label (int, int64, float32, or ndarray:TYPE:SHAPE). A shard is held
// in memory until it is closed, for where its samples lie stands before them.
std::unique_ptr<PackFormat> PackMds(const api::Label& label, int64_t shard_bytes);
// The one of options.format; none where nothing is packed so.
std::unique_ptr<PackFormat> PackFormatOf(const PackOptions& options);

}  // namespace hetero::local
