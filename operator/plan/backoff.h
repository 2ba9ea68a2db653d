#pragma once

#include <string>
#include <vector>

#include "operator/plan/failure.h"
#include "operator/plan/pass.h"

// The pace at which slots are filled again. A pod that has lived for two minutes is replaced at
// once, and so is the first that has not; the next ones wait, longer each time.
namespace hetero::plan {

// To be called once for each failure that is counted, whether it costs a restart or not. A node
// that rejected the pod is avoided for ten minutes.
void NoteEnd(Pass& pass, const Failure& failure);

// Whether the slot may be filled now; asks for a pass at the time when it may.
bool MayFill(Pass& pass, const Slot& slot);
// Why not, for a person; empty when it may.
std::string DescribeBackoff(const Pass& pass, const Slot& slot);

// Nodes that new pods are to keep away from, by name.
std::vector<std::string> AvoidedNodes(const Pass& pass);

// Drops what has no meaning any more.
void ForgetOldBackoff(Pass& pass);

}  // namespace hetero::plan
