#pragma once

#include <stop_token>

#include "api/hetero_training_job.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/train/device/input.h"
#include "runtime/train/models/model.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/progress/observer.h"
#include "runtime/train/progress/phase_clock.h"

namespace hetero::train {

// Runs the model over this rank's share of the validation samples, the next `batches` of `stream`,
// in evaluation mode and without gradients. Returns sums for Agreement::Exchange; an error of the
// stream and a requested stop stand in it and end the pass early. Each sample counts once over all
// ranks.
RankState EvaluateShare(Model& model, const InputConverter& input, const api::Loss& loss,
                        api::Precision precision, int64_t batches, feed::BatchStream& stream,
                        Observer& observer, PhaseClock& phases, std::stop_token stop);

}  // namespace hetero::train
