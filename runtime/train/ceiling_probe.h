#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/job/schedule.h"
#include "runtime/train/device/device.h"
#include "runtime/train/interrupts.h"
#include "runtime/train/process_group/agreement.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/trainer_options.h"

// How fast the ranks train when input costs nothing: each takes a few steps on its first batch,
// again and again, with a model and an optimiser that are thrown away afterwards. The training that
// follows is the same, bit for bit, as without the probe.
namespace hetero::train {

// What the probe's steps share with the training. `group` is null for one rank.
struct ProbePeers {
  GlooGroup* group = nullptr;
  Agreement& agreement;
  Device& device;
};

// Samples per second of all ranks together: `options.ceiling_probe_steps` steps after a few to warm
// up, the median of their times without waiting for input. All ranks call it at once, each with its
// own first batch; the result is this rank's measurement. kFailedPrecondition on all ranks when the
// dataset has not even one full step. `interrupts` are the training loop's. Throws what LibTorch
// throws.
absl::StatusOr<double> ProbeCeiling(const TrainerOptions& options, const job::Schedule& schedule,
                                    const feed::Batch& first, const ProbePeers& peers,
                                    base::Clock& clock, Interrupts interrupts);

}  // namespace hetero::train
