#pragma once

#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/kube/store.h"
#include "operator/plan/observed.h"

// Whose turn it is when an object changes: keys of jobs ("namespace/name") for the work queue. By
// name, not by uid: a left-over of a deleted job is in the way of a new one of the same name.
namespace hetero::program {

// Empty for a pod that does not bear its job's name.
std::string JobOfPod(const kube::ObjectKey& key, const plan::ObservedPod& pod);
std::string JobOfService(const kube::ObjectKey& key);
std::string JobOfConfigMap(const kube::ObjectKey& key);
std::string JobOfNetworkPolicy(const kube::ObjectKey& key);
// Empty for one that does not bear a job's name.
std::string JobOfWorkload(const kube::ObjectKey& key, const plan::ObservedWorkload& workload);
// Empty for one that is not named as those of a job's attempts.
std::string JobOfPodGroup(const kube::ObjectKey& key);

// Jobs with pods on the node, each once.
std::vector<std::string> JobsOnNode(const kube::Store<plan::ObservedPod>& pods,
                                    const std::string& node);

}  // namespace hetero::program
