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

// The Workload that others made for the job, as its label says; empty: the operator makes it.
std::string PrebuiltWorkloadOf(const Pass& pass);

// Null: there is none.
std::shared_ptr<const ObservedWorkload> GangWorkload(const Pass& pass);

// That of one CPU worker beyond the gang; null: there is none.
std::shared_ptr<const ObservedWorkload> ElasticWorkload(const Pass& pass, const std::string& role,
                                                        int32_t index);

// By which its pods get what they ask for: the gang's or, beyond it, the replica's own.
std::shared_ptr<const ObservedWorkload> WorkloadOf(const Pass& pass, const api::Role& role,
                                                   int32_t index);

// Whether pods of the job exist under an admission, and only under one. A job that was begun
// without a queue goes on without one, whatever its label says now.
bool NeedsAdmission(const Pass& pass);

// Whether replica `index`, which has a pod or has none, may have one, as far as queues go.
bool HasRoom(const Pass& pass, const api::Role& role, int32_t index, bool has_pod);
// Whether it is known where a pod of it may be made now.
bool MayBeMade(Pass& pass, const api::Role& role, int32_t index);

// What the job's Workload is to claim. kFailedPrecondition names what is missing in the cluster.
absl::StatusOr<WorkloadClaim> GangClaim(const Pass& pass);
// Of one CPU worker beyond the gang, which others may take back while the gang goes on: its
// priority has to be below the gang's.
absl::StatusOr<WorkloadClaim> ElasticClaim(const Pass& pass, int32_t role, int32_t index);

// Whether a Workload that holds no quota yet claims something else than the job does now.
bool Differs(const ObservedWorkload& workload, const WorkloadClaim& claim, const api::Spec& spec);

// What its admission adds to the pods of a role; null: nothing, since the job is in no queue, or
// the role in none of its sets.
std::shared_ptr<const children::Placement> PlacementOf(const Pass& pass,
                                                       const ObservedWorkload& workload,
                                                       const std::string& role);

// For what the job needs of Kueue and others have to make; nobody is told when they have.
inline constexpr base::Duration kLookAgain = std::chrono::seconds(10);

// Names of flavors that it was given and that the cluster does not know (any more).
std::vector<std::string> UnknownFlavors(const Pass& pass, const ObservedWorkload& workload);

}  // namespace hetero::plan
