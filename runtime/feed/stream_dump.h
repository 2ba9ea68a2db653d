#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/wire/batch.h"

namespace hetero::feed {

// `--dump-stream DIR`: the training batches a rank consumed, one safetensors file each, for
// comparing them with another implementation. DIR/rank0-step000012.safetensors holds
//   images uint8 [N, H, W, C], labels int32 [N], sample_ids int64 [N], slots int64 [N]
// with epoch, step and rank as metadata. Several views of the image are [N, views, H, W, C]; where
// samples have fields (Batch::fields), these stand by their names in the place of labels. Safe from
// any thread.
class StreamDump {
 public:
  // Creates `folder` with its parents when it is absent.
  static absl::StatusOr<std::unique_ptr<StreamDump>> Create(const std::string& folder);

  // Batches of validation, and without samples, are left out.
  absl::Status Write(const Batch& batch) const;

 private:
  explicit StreamDump(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace hetero::feed
