#pragma once

#include <atomic>
#include <stop_token>

#include "absl/status/status.h"
#include "base/clock.h"
#include "runtime/job/schedule.h"
#include "runtime/train/batch_source.h"
#include "runtime/train/generations.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/trainer_options.h"

// The training of one rank. No LibTorch type appears here or in what this header includes, so that
// main and tests stay cheap to compile; everything below (models, DDP, optimisers) is LibTorch's.
namespace hetero::train {

// What a rank may be asked for while it trains.
struct StopTokens {
  std::stop_token stop;  // the job is to end
  std::stop_token
      leave;  // this rank alone is to go; for all ranks within a second: likewise `stop`
  std::atomic<bool>* save = nullptr;  // as Interrupts::save
};

// Trains the whole schedule: builds the model, resumes from a checkpoint or from the other ranks'
// state, forms the process group, steps, evaluates. When ranks are lost or leave, waits for the
// next generation and goes on in place. Returns OK after the last step; kCancelled when a stop
// ended it (all ranks agree on the step, and rank 0 leaves a checkpoint); kAborted when this rank
// has left the others, between two steps that all ranks agree on; else what went wrong, with rank
// and step: a model that throws, no memory. A stop is looked at between steps, and cuts waits for
// batches and peers short: a second after the request this rank's connections are shut down.
// Several ranks in one process are for tests and need TORCH_FR_BUFFER_SIZE=0 in the environment,
// because LibTorch's flight recorder is not safe then.
absl::Status RunTrainer(const TrainerOptions& options, const job::Schedule& schedule,
                        BatchSource& batches, Generations& generations, Observer& observer,
                        base::Clock& clock, const StopTokens& requests);

}  // namespace hetero::train
