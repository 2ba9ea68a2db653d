#pragma once

#include "api/job_resource.h"
#include "operator/children/pod_group.h"
#include "operator/kube/client.h"

namespace hetero::reconcile {

inline const kube::Resource kHeteroTrainingJobs = {
    .group = api::kGroup, .version = api::kVersion, .plural = api::kPlural};

// Of Kueue.
inline const kube::Resource kWorkloads = {
    .group = "kueue.x-k8s.io", .version = "v1beta2", .plural = "workloads"};
inline const kube::Resource kResourceFlavors = {.group = "kueue.x-k8s.io",
                                                .version = "v1beta2",
                                                .plural = "resourceflavors",
                                                .namespaced = false};
inline const kube::Resource kWorkloadPriorityClasses = {.group = "kueue.x-k8s.io",
                                                        .version = "v1beta2",
                                                        .plural = "workloadpriorityclasses",
                                                        .namespaced = false};

inline kube::Resource PodGroupsOf(children::GangApi gang_api) {
  const children::GangResource resource = children::ResourceOf(gang_api);
  return {.group = resource.group, .version = resource.version, .plural = resource.plural};
}

}  // namespace hetero::reconcile
