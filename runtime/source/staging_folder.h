#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::source {

// A folder that is filled as a whole or left as it was: everything is written under FOLDER/.partial
// and moved up by Commit(). Without Commit() the destructor removes what was written, and FOLDER
// too if it was created here. A killed process leaves .partial behind, which marks the folder as
// unfinished.
class StagingFolder {
 public:
  // Creates `folder` with its parents. kFailedPrecondition when it holds anything.
  static absl::StatusOr<std::unique_ptr<StagingFolder>> Create(const std::string& folder);
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  // Where to write until Commit().
  const std::string& path() const { return partial_; }
  absl::Status MakeFolder(const std::string& relative);
  absl::Status Commit();

 private:
  StagingFolder(std::string folder, bool created);

  std::string folder_;
  std::string partial_;
  bool created_;
  bool committed_ = false;
};

}  // namespace hetero::source
