#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/operator_scale/cluster_seen.h"

namespace hetero::bench {

// A job of four pods that registers at once, trains one step and stays there.
testing::json SmallJob(const std::string& name_space, const std::string& name);

// Jobs of four pods, applied one after another while something else keeps the operator busy: how
// long each takes to have its pods, which is the operator's own part, and to run, which is the
// scheduler's and the nodes' too.
class SmallJobs {
 public:
  SmallJobs(const ClusterSeen& seen, std::vector<std::string> namespaces)
      : seen_(seen), namespaces_(std::move(namespaces)) {}

  void Apply();  // the next one, in the next of the namespaces
  // Waits until all have what they are measured by; false when the time runs out.
  bool Await(std::chrono::seconds deadline);
  std::vector<double> SecondsToPods() const;  // of those that have them
  std::vector<double> SecondsToRunning() const;
  size_t count() const { return applied_.size(); }
  void Print(const char* what) const;

 private:
  struct Applied {
    std::string job;  // "namespace/name"
    Clock::time_point at;
  };

  const ClusterSeen& seen_;
  const std::vector<std::string> namespaces_;
  std::vector<Applied> applied_;
};

}  // namespace hetero::bench
