#pragma once

#include <map>
#include <string>

#include "api/hetero_training_job.h"

// Names and labels of a job's objects. Deterministic: a stale view of the cluster leads to
// AlreadyExists, never to a second object.
namespace hetero::children {

std::string ServiceName(const api::Metadata& job);        // <job>-head
std::string SecretName(const api::Metadata& job);         // <job>-tls-<first 10 of uid>
std::string ConfigMapName(const api::Metadata& job);      // <job>-config
std::string NetworkPolicyName(const api::Metadata& job);  // <job>
std::string PodName(const api::Metadata& job, const std::string& role,
                    int index);                          // <job>-<role>-<index>
std::string GangWorkloadName(const api::Metadata& job);  // <job>-gang
// Of the Workload of one CPU worker beyond the gang: its pod's name.
std::string ElasticWorkloadName(const api::Metadata& job, const std::string& role, int index);
// <job>-gang-<attempt>: pods of an attempt that ends do not count in the gang of the next.
inline constexpr char kPodGroupInfix[] = "-gang-";
std::string PodGroupName(const api::Metadata& job, int attempt);

// "training.hetero.dev/job-uid=<uid>": every child of this very job.
std::string JobSelector(const api::Metadata& job);
// Labels of all children; pods have role, replica-index and attempt besides.
std::map<std::string, std::string> ChildLabels(const api::Metadata& job);

}  // namespace hetero::children
