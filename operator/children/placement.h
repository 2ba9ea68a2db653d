#pragma once

#include <map>
#include <string>
#include <vector>

namespace hetero::children {

// What the admission of a Workload adds to the pods of one of its sets.
struct Placement {
  std::string workload;  // its name
  std::string pod_set;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> tolerations;  // each as compact JSON
  bool gated = false;  // the pod waits for a node of Kueue's choice (topology-aware scheduling)
  bool operator==(const Placement&) const = default;
};

}  // namespace hetero::children
