#pragma once

#include <map>
#include <string>

#include "api/hetero_training_job.h"

// Names and labels of a job's objects. Deterministic: a stale view of the cluster leads to
// AlreadyExists, never to a second object.
namespace hetero::children {

inline constexpr char kJobNameLabel[] = "training.hetero.dev/job-name";
inline constexpr char kJobUidLabel[] = "training.hetero.dev/job-uid";
inline constexpr char kRoleLabel[] = "training.hetero.dev/role";
inline constexpr char kReplicaIndexLabel[] = "training.hetero.dev/replica-index";
inline constexpr char kAttemptLabel[] = "training.hetero.dev/attempt";
inline constexpr char kIncarnationAnnotation[] = "training.hetero.dev/incarnation";
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedByValue[] = "hetero-operator";
// Selects every child of every job: what the operator watches.
inline constexpr char kChildSelector[] = "app.kubernetes.io/managed-by=hetero-operator";
inline constexpr char kManagedBySelf[] =
    "training.hetero.dev/hetero-operator";  // runPolicy.managedBy

std::string ServiceName(const api::Metadata& job);        // <job>-head
std::string SecretName(const api::Metadata& job);         // <job>-tls-<first 10 of uid>
std::string ConfigMapName(const api::Metadata& job);      // <job>-config
std::string NetworkPolicyName(const api::Metadata& job);  // <job>
std::string PodName(const api::Metadata& job, const std::string& role,
                    int index);  // <job>-<role>-<index>

// "training.hetero.dev/job-uid=<uid>": every child of this very job.
std::string JobSelector(const api::Metadata& job);
// Labels of all children; pods have role, replica-index and attempt besides.
std::map<std::string, std::string> ChildLabels(const api::Metadata& job);

}  // namespace hetero::children
