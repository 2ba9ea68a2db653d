#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/job/sample_order.h"
#include "runtime/job/stream_digest.h"

namespace hetero::train {

// One file of a checkpoint.
struct CheckpointFile {
  std::string name;
  int64_t bytes = 0;
  uint32_t crc32c = 0;
  bool operator==(const CheckpointFile&) const = default;
};

// manifest.json of a checkpoint: where the job stood, what it was, and what the files must hold.
struct CheckpointManifest {
  static constexpr int kFormatVersion = 1;

  int format_version = kFormatVersion;
  std::string job;  // its name, for people
  std::string run;  // unique per run of the job; restarts inside one keep it
  int64_t created_unix_ns = 0;
  int64_t generation = 0;
  int32_t world_size = 1;

  // What must be the same for the stream of samples to go on.
  std::string model;
  int32_t classes = 0;
  api::ImageShape input;
  std::string optimizer;
  int64_t samples = 0;  // of one epoch
  std::string dataset_fingerprint;
  std::string dataset_versions;  // of its objects, not compared; empty: none, or 0.2.0 wrote it
  int64_t seed = 0;
  int64_t global_batch = 0;  // samples of a full step over all ranks
  job::SampleOrder order;    // empty where 0.1.0 wrote it: such a field is not compared

  // Where it stood: `step` optimiser steps are done; the next one begins at `next_slot` of `epoch`.
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t next_slot = 0;
  int64_t evaluated_step = 0;  // steps done at the latest completed evaluation; 0: none
  job::StreamDigest digest;    // of the whole job
  int64_t samples_consumed = 0;

  std::vector<CheckpointFile> files;
};

std::string ToJson(const CheckpointManifest& manifest);
// kDataLoss says what is missing or malformed; kFailedPrecondition when a newer version of this
// program wrote it.
absl::StatusOr<CheckpointManifest> ParseCheckpointManifest(const std::string& text);

// OK when a job described by `job` can go on from `found`; else kFailedPrecondition with every
// difference. Rank count and the number of steps may differ.
absl::Status CheckFits(const CheckpointManifest& found, const CheckpointManifest& job);

}  // namespace hetero::train
