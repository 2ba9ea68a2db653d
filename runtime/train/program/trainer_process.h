#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/process/rank_session.h"

namespace hetero::train {

struct TrainerProcessOptions {
  process::RankSession::Options session;
  int threads = 0;                  // intra-op threads of LibTorch; 0: one per usable core
  int32_t ceiling_probe_steps = 0;  // measure the rate without input first; 0: do not
  bool gpu = false;                 // train on the first GPU that this process sees
  // Where rank 0 leaves the trained weights and the curves; empty: the folder of spec.output, if
  // that is one and can be written to.
  std::string output_folder;
  // Called after each epoch with the CRC32C over all parameters and buffers; may be empty.
  std::function<void(int64_t epoch, uint32_t parameter_crc)> on_epoch_end;
};

// One rank from joining to leaving: waits for its generation, trains the whole schedule, reports to
// the head. Returns what ended it; kCancelled when told to stop, kAborted when `stop` made this
// rank leave the others.
absl::Status RunTrainerProcess(TrainerProcessOptions options, base::Clock& clock,
                               std::stop_token stop);

}  // namespace hetero::train
