#pragma once

#include <cstdint>
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

// Where checkpoints lie: a folder, or a bucket below a prefix. Each is "step-000000000020" with its
// files, manifest.json and, written last, DONE, which holds the manifest's CRC, so half of one
// never looks like a whole one. Runs that leave each other's alone have "step-000000000020-2"
// beside it. No LibTorch here, and no threads; one writer at a time (checkpoint_lock.h,
// checkpoint_lease.h).
class CheckpointPlace {
 public:
  virtual ~CheckpointPlace() = default;

  // Of a checkpoint that Write() or LoadNewest() has named.
  virtual std::string UriOf(const std::string& checkpoint) const = 0;

  // Writes one checkpoint and returns where it is. Fills in manifest.files, and dates it after all
  // that are there, whatever the clock says. What was there under the same step gives way; with
  // `beside_others` only what manifest.run itself has written. On an error nothing is left behind,
  // and older checkpoints are as before.
  absl::StatusOr<std::string> Write(CheckpointManifest manifest, CheckpointFiles files,
                                    bool beside_others = false) const;

  // Removes all but the newest `keep`, damaged ones, and what interrupted writers left. With a
  // `run`, only checkpoints of that run count and go, and nobody knows whose the damaged ones are.
  // `written` is never removed: what Write() has returned; empty: none.
  absl::Status Prune(int keep, const std::string& run, const std::string& written = "") const;

  struct Loaded {
    std::string folder;  // where it is, for messages
    CheckpointManifest manifest;
    std::map<std::string, std::string> files;
    std::vector<std::string> damaged;  // newer checkpoints that were passed over, each with why
  };
  // The newest checkpoint, verified: complete, every file of the right size and CRC. Damaged ones
  // are passed over. kNotFound when there is none at all (with a `run`: none of it); kDataLoss when
  // all are damaged; kFailedPrecondition, naming what differs, when the newest good one does not
  // fit `job` or a newer program wrote it.
  absl::StatusOr<Loaded> LoadNewest(const CheckpointManifest& job, const std::string& run) const;

 protected:
  // Of the place, as people know it.
  virtual const std::string& name() const = 0;
  // Where a checkpoint of this name is.
  virtual std::string Where(const std::string& checkpoint) const = 0;
  // Whether WriteAll() puts a checkpoint in the place of another at once. Where it does not, a new
  // one gets a name of its own, and the other goes when it is whole.
  virtual bool Replaces() const = 0;
  // Behind the step in the name of a new one: "" or "-NUMBER".
  virtual std::string Suffix() const { return ""; }
  // Whether an error says nothing of the checkpoint that was looked at, but of the place.
  virtual bool IsOfPlace(const absl::Status& status) const = 0;

  // What begins as names of checkpoints do, in any order.
  virtual absl::StatusOr<std::vector<std::string>> Names() const = 0;
  // kNotFound: it has no such file.
  virtual absl::StatusOr<int64_t> SizeOf(const std::string& checkpoint,
                                         const std::string& file) const = 0;
  // kNotFound: it has no such file; kOutOfRange: it has more than `most` bytes.
  virtual absl::StatusOr<std::string> Read(const std::string& checkpoint, const std::string& file,
                                           int64_t most) const = 0;
  // In this order; after an error nothing of it is left.
  virtual absl::Status WriteAll(const std::string& checkpoint,
                                const CheckpointFiles& files) const = 0;
  virtual absl::Status Remove(const std::string& checkpoint) const = 0;
  // What interrupted writers left under other names than checkpoints have.
  virtual absl::Status RemoveLeftovers() const = 0;

 private:
  struct Found {
    std::string name;
    absl::StatusOr<CheckpointManifest> manifest;
  };
  // Those whose manifest cannot be read, then the others, newest first.
  absl::StatusOr<std::vector<Found>> List() const;
  absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& checkpoint) const;
  absl::Status ReadFiles(const std::string& checkpoint, const CheckpointManifest& manifest,
                         std::map<std::string, std::string>& files) const;
  // A name for a checkpoint of that step which leaves those alone that `stays` names.
  template <typename Stays>
  static std::string NameBeside(const std::vector<Found>& found, const std::string& name,
                                Stays stays);
};

// What names of checkpoints begin with, the file that makes one whole, and the step of a name; -1
// for other names.
inline constexpr char kCheckpointPrefix[] = "step-";
inline constexpr char kCheckpointDone[] = "DONE";
int64_t StepOfCheckpoint(const std::string& name);

}  // namespace hetero::train
