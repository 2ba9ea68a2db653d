#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

// What `hetero-runtime pack` does: puts the samples of a dataset into shards.
namespace hetero::local {

struct PackProgress {
  int64_t shards = 0;   // that are whole
  int64_t samples = 0;  // in them and in the one that is written
  int64_t bytes = 0;    // of both
  int64_t kept = 0;     // samples in shards that were there already
};

// "packed 1,200 of 4,000 samples, 3 shards, 2.81 MB, 912 samples/s, 3.07 s left"; `seconds` since
// the packing began.
std::string ProgressText(const PackProgress& progress, int64_t samples, double seconds);

struct PackOptions {
  api::DatasetSource source;
  api::Label label;
  std::vector<api::StorageAccess> storage;  // spec.storage, of all stores
  std::string destination;                  // URI of a folder or a bucket's prefix
  api::DatasetFormat format = api::DatasetFormat::kWebDataset;  // or kMds
  int64_t shard_bytes = 256'000'000;  // of one shard; more only where one sample has more
  bool verify = true;                 // each shard is read back and compared
  // Called on this thread, a few times a second.
  std::function<void(const PackProgress& progress, int64_t samples)> on_progress;
  std::stop_token stop;
};

// A destination's own record of what is in it, which makes an interrupted packing go on.
inline constexpr char kPackRecord[] = "_pack.json";

struct Packed {
  PackProgress progress;
  api::DatasetSource source;  // the shards, as a manifest names them
  api::Label label;
  std::vector<std::string> class_names;  // by number; empty where classes are numbers
};

// kInvalidArgument: there are no shards of this format, or none as large as shard_bytes.
absl::Status CheckPackOptions(const PackOptions& options);

// Writes all samples into shards in the order of their ids, so a job reads the same stream from
// them as from the source (where it has two splits, of that for training). Pictures keep the stored
// bytes; those stored as bare pixels become PNG. The same source gives the same bytes. What is
// complete in the destination already, by its record, stays.
// - WebDataset: shard-000000.tar and so on with 000000000.jpg or .png, beside it 000000000.cls with
//   the class, or 000000000.json with other labels.
// - MDS: shard.00000.mds and so on as MosaicML's MDSWriter writes them from the columns image
//   (bytes) and label, and when all are there index.json, which makes a dataset of them. One shard
//   is in memory.
//
// kCancelled: stopped; the same call goes on. kFailedPrecondition: the destination holds something
// else, or a shard that was read back is not what was written. kInvalidArgument: as
// CheckPackOptions(); the destination is the source or lies in it; more shards than the format
// has numbers for; a sample or label that no shard can hold. Other errors are the stores', and
// those of a sample that cannot be read, with its name.
absl::StatusOr<Packed> PackDataset(const PackOptions& options);

}  // namespace hetero::local
