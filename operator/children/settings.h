#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

// What the operator's own configuration (flags, chart values) says about the objects of a job.
namespace hetero::children {

struct Settings {
  std::string runtime_image = "hetero-runtime:0.1.0";  // head and CPU workers
  std::string trainer_image = "hetero-trainer:0.1.0";  // GPU workers
  std::string image_pull_policy;                       // empty: Kubernetes' default
  std::vector<std::string> image_pull_secrets;
  std::string operator_namespace = "hetero-system";
  // Labels of the operator's pods, which a job's NetworkPolicy lets in on the status port.
  std::map<std::string, std::string> operator_labels = {
      {"app.kubernetes.io/name", "hetero-operator"}};
  std::string metrics_from;  // namespace whose pods may read port 9090; empty: none

  // For the head of a job that the operator has ended to write the report. With a checkpoint
  // configured its members have 20 s to write one.
  base::Duration last_report_grace = std::chrono::seconds(30);
  base::Duration node_lost_grace =
      std::chrono::seconds(60);  // NotReady for longer: pods are force-deleted
  base::Duration pod_kill_grace =
      std::chrono::seconds(30);  // Terminating beyond its own grace for longer
};

}  // namespace hetero::children
