#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/integration/operator/support/control_plane.h"
#include "tests/integration/operator/support/world.h"

// The system as a user installs it, and jobs as a user writes them.
namespace hetero::testing {

// The chart, installed once per program in a namespace that enforces the Pod Security Standard
// `restricted`; its operator is ready. With HETERO_E2E_INSTALLED in the environment another program
// has installed it (run_groups).
class Installation {
 public:
  static Installation& Get();

  // Pods that the operator's Deployment should have; waits until it has them, ready.
  void ScaleOperator(int replicas);
  std::string OperatorLog() const;

 private:
  Installation();
};

// A namespace that enforces `restricted`, with a volume claim `data` on a folder that this machine
// and every node share (no claim where there is no such folder).
class JobNamespace {
 public:
  explicit JobNamespace(const std::string& prefix);
  ~JobNamespace();
  const std::string& name() const { return space_.name(); }
  // The volume's folder here.
  const std::string& folder() const { return folder_; }

 private:
  TestNamespace space_;
  std::string folder_;
};

// Two CPU workers and two trainers on CPUs, with small requests. About 20 s of training that needs
// little of a core: most of it is the operator Delay. Its steps take about 0.1 s.
json SlowJob(const std::string& name);
// Mounts the namespace's claim at /data in all roles.
void MountData(json& job);
// To edit: the container `runtime` and the pod spec of the role's template.
json& RuntimeOf(json& job, const std::string& role);
json& PodSpecOf(json& job, const std::string& role);

// `streamDigest` and accuracy of the same job as `hetero-runtime local` has them, without its
// Delay, which is no part of the stream when no operator with random parameters comes after it; one
// run per distinct job.
json LocalReport(const json& job, const std::string& dataset_folder = "");

// The job's step as its status says.
int64_t StepOf(const JobUnderTest& job);
// Training has begun and this step is reached.
bool WaitStep(const JobUnderTest& job, int64_t step);
// Another pod than `old_uid` is there in its place, and runs.
bool WaitReplaced(const JobUnderTest& job, const std::string& role, int index,
                  const std::string& old_uid);
// Succeeded, with the stream of the undisturbed job; and then all its children gone.
void ExpectSucceededWithDigest(const JobUnderTest& job, const std::string& digest);
// `kubectl logs` of every pod of the job, for failed tests and for what a log must say.
std::string Logs(const JobUnderTest& job, const std::string& role, int index);

}  // namespace hetero::testing
