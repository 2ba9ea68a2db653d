#pragma once

#include <string>

#include "operator/plan/pass.h"

namespace hetero::plan {

// Counts what has failed since the last pass, each pod once, and decides: the failed pods alone,
// the whole gang, or the end of the job. Only the status changes here; pods are deleted in a later
// pass that reads it (pod_deletion.h).
void CountFailures(Pass& pass);

// Gang restart where the objects that all pods were made with are gone: a Service that came back
// with another address, a lost authority. Costs nothing.
void CheckServiceAndTrust(Pass& pass);

// Raises the attempt, or fails the job when `cost` exceeds what is left of runPolicy.maxRestarts.
// Returns whether the attempt was raised.
bool RestartGang(Pass& pass, int32_t cost, const std::string& reason, const std::string& message);

}  // namespace hetero::plan
