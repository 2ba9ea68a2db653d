#pragma once

#include <optional>
#include <string>

#include "operator/children/pod_group.h"
#include "operator/plan/pass.h"

// Jobs with spec.scheduling.gang: a scheduler places what they cannot do without (the head, the GPU
// workers and minReplicas of each CPU role) all at once or not at all. It is told of them by one
// object for each attempt, a PodGroup, which exists before their pods.
namespace hetero::plan {

// Whether pods of the attempt may be made now. Makes its PodGroup, and makes it anew, where that is
// possible beside its pods, when it asks for another number of pods than the job does while some of
// them have no place yet; those of attempts of which no pod is left go. Where the cluster serves no
// such kind it is looked for again and again.
bool FormGang(Pass& pass);

// What the attempt's pods belong to; none: nobody places them together.
std::optional<children::GangMembership> MembershipOf(const Pass& pass);

// Why there is no PodGroup and none can be made; empty: nothing is wrong.
std::string MissingGang(const Pass& pass);

// Nothing is to run: what the schedulers know of the job goes.
void DeletePodGroups(Pass& pass);

}  // namespace hetero::plan
