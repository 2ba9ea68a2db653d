#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/agent/coordinator.h"
#include "runtime/agent/stream_protocol.h"
#include "runtime/job/step_plan.h"

// What a script's state says, and whether it is of this job's stream.
namespace hetero::agent {

// What decides the samples of a stream beside its seed and its samples per step, as text:
// "dataset:<fingerprint> shuffle:Full last-batch:Keep pipeline:<16 digits>".
std::string StreamFingerprint(const std::string& dataset_fingerprint,
                              const api::HeteroTrainingJob& job);

// The state of this job after `position.step` steps.
StreamState StateAt(const Position& position, const std::string& fingerprint, int64_t seed,
                    const job::StepPlan& plan);

// Where `state` lets a script go on in this job. kFailedPrecondition names each difference, and
// what to do about it: another dataset, order, seed, or number of samples per step; a step that
// this job does not have; an epoch and slot that are not the step's.
absl::StatusOr<Position> PositionOf(const StreamState& state, const std::string& fingerprint,
                                    int64_t seed, const job::StepPlan& plan);

}  // namespace hetero::agent
