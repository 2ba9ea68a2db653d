#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/train/checkpoint/checkpoint_place.h"

namespace hetero::train {

// A folder of checkpoints, each a folder in it. One is written under a temporary name, synced, and
// only then given its own.
class CheckpointFolder : public CheckpointPlace {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string UriOf(const std::string& checkpoint) const override { return "file://" + checkpoint; }

  // Creates the folder. Errors name it and the reason.
  absl::Status Create() const;

 protected:
  const std::string& name() const override { return path_; }
  std::string Where(const std::string& checkpoint) const override;
  bool Replaces() const override { return true; }
  // What cannot be read here is damaged.
  bool IsOfPlace(const absl::Status&) const override { return false; }
  absl::StatusOr<std::vector<std::string>> Names() const override;
  absl::StatusOr<int64_t> SizeOf(const std::string& checkpoint,
                                 const std::string& file) const override;
  absl::StatusOr<std::string> Read(const std::string& checkpoint, const std::string& file,
                                   int64_t most) const override;
  absl::Status WriteAll(const std::string& checkpoint, const CheckpointFiles& files) const override;
  absl::Status Remove(const std::string& checkpoint) const override;
  absl::Status RemoveLeftovers() const override;

 private:
  std::string path_;
};

}  // namespace hetero::train
