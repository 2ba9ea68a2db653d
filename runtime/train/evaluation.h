#pragma once

#include <stop_token>

#include "runtime/train/agreement.h"
#include "runtime/train/input.h"
#include "runtime/train/models/model.h"
#include "runtime/train/phase_clock.h"
#include "runtime/train/trainer.h"

namespace hetero::train {

// Runs the model over this rank's share of the validation samples, the next `batches` of `stream`,
// in evaluation mode and without gradients. Returns sums for Agreement::Exchange; an error of the
// stream and a requested stop stand in it and end the pass early. Each sample counts once over all
// ranks.
RankState EvaluateShare(Model& model, const InputConverter& input, const api::Loss& loss,
                        api::Precision precision, int64_t batches, feed::BatchStream& stream,
                        Observer& observer, PhaseClock& phases, std::stop_token stop);

}  // namespace hetero::train
