#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/plan/pass.h"

// What the job claims of a queue's quota, and what it was given.
namespace hetero::plan {

// The LocalQueue that the job's label names; empty: none.
std::string QueueOf(const Pass& pass);

// Null: there is none.
std::shared_ptr<const ObservedWorkload> GangWorkload(const Pass& pass);

// What the job's Workload is to claim. kFailedPrecondition names what is missing in the cluster.
absl::StatusOr<WorkloadClaim> GangClaim(const Pass& pass);

// Whether a Workload that holds no quota yet claims something else than the job does now.
bool Differs(const ObservedWorkload& workload, const WorkloadClaim& claim, const api::Spec& spec);

// What its admission adds to the pods of a role; null: nothing, since the job is in no queue, or
// the role in none of its sets.
std::shared_ptr<const children::Placement> PlacementOf(const Pass& pass,
                                                       const ObservedWorkload& workload,
                                                       const std::string& role);

// Names of flavors that it was given and that the cluster does not know (any more).
std::vector<std::string> UnknownFlavors(const Pass& pass, const ObservedWorkload& workload);

}  // namespace hetero::plan
