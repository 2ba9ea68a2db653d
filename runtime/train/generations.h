#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/train/process_group/key_value_store.h"

namespace hetero::train {

// The generations of a job as one rank sees them: in each, the same ranks form one process group.
// Called by the training thread.
class Generations {
 public:
  virtual ~Generations() = default;
  struct Generation {
    int64_t number = 0;
    std::string host;                      // this rank's address for the process group
    std::shared_ptr<KeyValueStore> store;  // for this generation alone
    std::stop_token over;                  // requested when a newer one has opened
  };
  // Waits for a generation newer than `after`. kCancelled on `stop`, and when this rank is asked to
  // leave; kOutOfRange when another rank has left with the result of the whole job, so that nothing
  // is left to do; other errors end the training.
  virtual absl::StatusOr<Generation> Next(int64_t after, std::stop_token stop) = 0;
  // The process group of generation `number` broke here; a newer generation is needed.
  virtual void ReportBroken(int64_t number, const std::string& why) = 0;
};

}  // namespace hetero::train
