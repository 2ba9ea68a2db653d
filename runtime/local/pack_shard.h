#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/local/pack_record.h"
#include "runtime/source/dataset.h"
#include "runtime/storage/writable_store.h"

// One archive that samples are packed into. Internal to pack.
namespace hetero::local {

// Makes of a sample what a shard can hold: bare pixels become a PNG with the same pixels.
// kInvalidArgument: pictures of one channel; a label that is not finite.
absl::Status MakePackable(const api::Label& label, source::RawSample* sample);

// What a packable sample takes in an archive.
int64_t PackedBytes(const source::RawSample& sample, const api::Label& label);

class PackShard {
 public:
  PackShard(std::string name, std::unique_ptr<storage::ObjectWriter> writer);

  int64_t bytes() const { return shard_.bytes; }
  absl::Status Add(int64_t id, const source::RawSample& sample, const api::Label& label);
  // Once.
  absl::StatusOr<std::pair<PackedShard, storage::Object>> Close();

 private:
  absl::Status Member(const std::string& name, absl::Span<const uint8_t> bytes);
  absl::Status Append(absl::Span<const uint8_t> bytes);

  const std::unique_ptr<storage::ObjectWriter> writer_;
  PackedShard shard_;
};

}  // namespace hetero::local
