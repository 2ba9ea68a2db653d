#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// How many replicas of the role there are to be. Of a CPU role with spec.autoscaling that is what
// the status says, within the role's bounds and `replicas` to begin with; else the spec's number.
int32_t WantedReplicas(const api::Spec& spec, const api::JobStatus& status, const api::Role& role);

// Moves the CPU roles at once to what the head says that they need: its signal is damped already.
// Only the status changes here; a later pass that reads it creates pods, or deletes those with the
// highest indices.
void Autoscale(Pass& pass);

}  // namespace hetero::plan
