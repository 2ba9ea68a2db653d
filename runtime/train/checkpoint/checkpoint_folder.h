#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/checkpoint/checkpoint_manifest.h"

namespace hetero::train {

// Contents of a checkpoint's files, by name.
using CheckpointFiles = std::vector<std::pair<std::string, std::string>>;

// A folder of checkpoints. Each is a folder "step-000000000020" with the files, manifest.json and,
// written last, DONE, which holds the manifest's CRC. Runs that leave each other's alone have
// "step-000000000020-2" beside it. It is written under a temporary name, synced,
// and only then given its own, so half of one never looks like a whole one. No LibTorch here, and
// no threads; one writer at a time (checkpoint_lock.h).
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Creates the folder. Errors name it and the reason.
  absl::Status Create() const;

  // Writes one checkpoint and returns its folder. Fills in manifest.files, and dates it after all
  // that are there, whatever the clock says. What was there under the same step gives way; with
  // `beside_others` only what manifest.run itself has written. On an error nothing is left behind,
  // and older checkpoints are as before.
  absl::StatusOr<std::string> Write(CheckpointManifest manifest, const CheckpointFiles& files,
                                    bool beside_others = false) const;

  // Removes all but the newest `keep`, damaged ones, and what interrupted writers left. With a
  // `run`, only checkpoints of that run count and go, and nobody knows whose the damaged ones are.
  // `written` is never removed: a folder that Write() has returned; empty: none.
  absl::Status Prune(int keep, const std::string& run, const std::string& written = "") const;

  struct Loaded {
    std::string folder;
    CheckpointManifest manifest;
    std::map<std::string, std::string> files;
    std::vector<std::string> damaged;  // newer checkpoints that were passed over, each with why
  };
  // The newest checkpoint, verified: complete, every file of the right size and CRC. Damaged ones
  // are passed over. kNotFound when there is none at all (with a `run`: none of it); kDataLoss when
  // all are damaged; kFailedPrecondition, naming what differs, when the newest good one does not
  // fit `job` or a newer program wrote it.
  absl::StatusOr<Loaded> LoadNewest(const CheckpointManifest& job, const std::string& run) const;

 private:
  struct Found {
    std::string folder;
    absl::StatusOr<CheckpointManifest> manifest;
  };
  // Those whose manifest cannot be read, then the others, newest first.
  absl::StatusOr<std::vector<Found>> List() const;
  // The folder for a checkpoint of that step and run which leaves other runs' alone.
  static std::string NameBeside(const std::vector<Found>& found, const std::string& name,
                                const std::string& run);

  std::string path_;
};

}  // namespace hetero::train
