#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "operator/children/placement.h"
#include "operator/children/pod_group.h"
#include "operator/children/settings.h"

// The objects that make up a job in the cluster, as JSON ready to be created. Pure: same arguments,
// same bytes. Every object has the controller ownerReference (blockOwnerDeletion), the labels of
// names.h and no finalizer.
namespace hetero::children {

// ClusterIP, publishNotReadyAddresses, ports join, status and page, selecting the head's pod.
nlohmann::json HeadService(const api::HeteroTrainingJob& job);

// job.json (what head and workers read, with the entries of settings.storage_defaults) and, with
// TLS, ca.crt (the job's own authority) and operator-ca.crt (the operator's, trusted on the status
// port only). PEM texts are empty without TLS.
nlohmann::json ConfigMap(const api::HeteroTrainingJob& job, const Settings& settings,
                         const std::string& job_ca_pem, const std::string& operator_ca_pem);

// Certificate and key of one role type.
struct Leaf {
  std::string certificate_pem;
  std::string key_pem;
};
// The per-job Secret: keys <role type in lower case>.crt and .key for Head, CPUWorker and
// GPUWorker.
nlohmann::json TlsSecret(const api::HeteroTrainingJob& job, const Leaf& head,
                         const Leaf& cpu_worker, const Leaf& gpu_worker);

// Ingress only: all ports from pods of the same job uid, status from the operator, metrics from
// settings.metrics_from.
nlohmann::json NetworkPolicy(const api::HeteroTrainingJob& job, const Settings& settings);

struct PodSlot {
  const api::Role* role = nullptr;
  int index = 0;
  int attempt = 1;
  int64_t incarnation = 0;                 // ns since 1970 when the operator decided to create it
  std::string head_address;                // "<ClusterIP>:7070"
  std::string image;                       // unless the template names one; empty: the settings'
  std::string install_image;               // of what a script's pod is given; empty: the settings'
  std::vector<std::string> avoided_nodes;  // where it is not to go if it can go elsewhere
  const Placement* placement = nullptr;    // null: of a job in no queue
  const GangMembership* gang = nullptr;    // null: of a job without a gang scheduler
  // For the head alone.
  int64_t job_created = 0;    // ns since 1970; 0: not known, and it counts from its own incarnation
  std::string history;        // status.history; empty: there is none
  std::string attempt_cause;  // empty: the first attempt, or not known
};
// One pod: the role's template with our container `runtime` (image, command, ports, probes,
// environment, mounts) and the defaults of PSS `restricted` merged under it; what the user set
// stays, but for names, labels, owner, restartPolicy and HETERO_* variables, which are ours.
nlohmann::json Pod(const api::HeteroTrainingJob& job, const PodSlot& slot,
                   const Settings& settings);

// One role's pods in a Workload.
struct PodSet {
  const api::Role* role = nullptr;
  int count = 0;
};
// A Workload of Kueue (kueue.x-k8s.io/v1beta2): what the pods ask for, by role. A set's name is its
// role's.
struct WorkloadSpec {
  std::string name;
  std::string queue;
  std::string priority_class;  // empty: none
  int priority = 0;
  std::string spec_hash;
  std::vector<PodSet> pod_sets;
};
nlohmann::json Workload(const api::HeteroTrainingJob& job, const WorkloadSpec& workload,
                        const Settings& settings);

// Whether the role's template names an image for our container itself.
bool NamesRuntimeImage(const api::Role& role);

// What only a look at the pod templates shows: no container named runtime where the template lists
// containers, a reserved name or mount path taken, a script without an image, ... Field paths and
// reasons; empty: fine.
struct TemplateError {
  std::string path;
  std::string reason;
};
std::vector<TemplateError> CheckTemplates(const api::HeteroTrainingJob& job);

}  // namespace hetero::children
