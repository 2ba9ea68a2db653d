#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/train/program/passing_folder.h"

namespace hetero::train {

// The files that a job's model begins from (training.model.weights, torchScript): those in stores
// are copied to this machine for as long as this lives.
class ModelFiles {
 public:
  // The job with the copies in their places. Errors name the field and the object.
  absl::StatusOr<api::HeteroTrainingJob> Fetch(api::HeteroTrainingJob job);

  // Says of the objects what `status` says of their copies.
  absl::Status OfObjects(const absl::Status& status) const;

 private:
  absl::Status FetchInto(const char* name, const std::vector<api::StorageAccess>& storage,
                         std::string* uri);

  std::optional<PassingFolder> folder_;
  // Addresses and paths of copies, and the objects' addresses.
  std::vector<std::pair<std::string, std::string>> objects_;
};

}  // namespace hetero::train
