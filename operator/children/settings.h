#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "base/clock.h"

// What the operator's own configuration (flags, chart values) says about the objects of a job.
namespace hetero::children {

struct Settings {
  std::string runtime_image = "hetero-runtime:0.3.0";  // head and CPU workers
  std::string trainer_image = "hetero-trainer:0.3.0";  // GPU workers
  bool trainer_has_cuda = true;                        // false: known to have none
  std::string image_pull_policy;                       // empty: Kubernetes' default
  std::vector<std::string> image_pull_secrets;
  std::string operator_namespace = "hetero-system";
  // Labels of the operator's pods, which a job's NetworkPolicy lets in on the status port.
  std::map<std::string, std::string> operator_labels = {
      {"app.kubernetes.io/name", "hetero-operator"}};
  std::string metrics_from;  // namespace whose pods may read port 9090; empty: none

  // By which of these labels a node says that it may be taken away at any time (roles[].capacity):
  // Karpenter, EKS, GKE (two kinds), AKS. A pod that may go there tolerates taints of these names.
  std::map<std::string, std::string> spot_labels = {
      {"karpenter.sh/capacity-type", "spot"},
      {"eks.amazonaws.com/capacityType", "SPOT"},
      {"cloud.google.com/gke-spot", "true"},
      {"cloud.google.com/gke-preemptible", "true"},
      {"kubernetes.azure.com/scalesetpriority", "spot"}};

  int32_t max_pods = 2000;  // of one job

  bool price_sheet = false;  // nodes have prices, besides those that roles state

  // What jobs have in spec.storage besides their own entries (api/storage_defaults.h).
  std::vector<api::StorageAccess> storage_defaults;

  // Between re-creations of a pod that ends soon, again and again: nothing after the first time,
  // this after the second, twice as much each time, up to the limit.
  base::Duration pod_backoff = std::chrono::seconds(10);
  base::Duration pod_backoff_limit = std::chrono::minutes(5);

  // For the head of a job that the operator has ended to write the report, beside the
  // runPolicy.stopGraceSeconds that its members have for a checkpoint.
  base::Duration last_report_grace = std::chrono::seconds(30);
  base::Duration node_lost_grace =
      std::chrono::seconds(60);  // NotReady for longer: pods are force-deleted
  base::Duration pod_kill_grace =
      std::chrono::seconds(30);  // Terminating beyond its own grace for longer
};

}  // namespace hetero::children
