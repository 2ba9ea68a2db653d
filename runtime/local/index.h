#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

// What `hetero-runtime index` does: writes down where the samples of shards lie.
namespace hetero::local {

struct IndexProgress {
  int64_t bytes = 0;  // of the shards, up to where each is gone through
  int64_t all_bytes = 0;
};

// "indexed 1.20 GB of 4.80 GB, 912 MB/s, 3.95 s left"; `seconds` since the indexing began.
std::string ProgressText(const IndexProgress& progress, double seconds);

struct IndexOptions {
  api::DatasetSource source;
  api::Label label;
  std::vector<api::StorageAccess> storage;  // spec.storage, of all stores
  std::string destination;                  // URI of the index
  // Called a few times a second, by one thread at a time.
  std::function<void(const IndexProgress& progress)> on_progress;
  std::stop_token stop;
};

struct Indexed {
  int64_t shards = 0;
  bool was_there = false;     // the destination was an index of this dataset already
  api::DatasetSource source;  // with the index, as a manifest names it
  api::Label label;
};

// "12 samples in 2 shards", and whether the index was there.
std::string SummaryText(const Indexed& indexed);

// Goes through the shards of a dataset and writes an index of them, whole or not at all; one that
// is there and does not go with the dataset any more is replaced. Takes 48 bytes of memory for each
// sample. kCancelled: stopped. kInvalidArgument: the format needs no index; the destination is
// something else than an index, or would be taken for one of the shards. Other errors are those of
// the shards and of the stores.
absl::StatusOr<Indexed> IndexDataset(const IndexOptions& options);

}  // namespace hetero::local
