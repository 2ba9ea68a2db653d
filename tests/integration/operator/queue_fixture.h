#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "operator/reconcile/job_resource.h"
#include "tests/integration/operator/support/world.h"

// Jobs in the queues of a real Kueue.
namespace hetero::testing {

inline const kube::Resource kClusterQueues = {"kueue.x-k8s.io", "v1beta2", "clusterqueues",
                                              /*namespaced=*/false};

// A namespace with the LocalQueue `team`, whose ClusterQueue has so many CPUs of the flavor `pool`
// (node label fake.hetero.dev/node: all nodes of the test cluster have it). Gone with the object.
class TeamQueue {
 public:
  explicit TeamQueue(const std::string& prefix, int cpus, const json& more = json::object());
  ~TeamQueue();
  const std::string& space() const { return space_.name(); }
  // CPUs that Kueue counts as in use.
  std::string Usage() const;
  bool WaitUsage(const std::string& cpus) const;

 private:
  TestNamespace space_;
};

// Looks at the namespace's pods all the time: what those that have not ended ask for.
class RequestSampler {
 public:
  explicit RequestSampler(std::string name_space);
  int most() const { return most_; }

 private:
  std::atomic<int> most_ = 0;
  std::jthread thread_;
};

class Queues : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Begin({.arguments = {"--kueue", "--pod-kill-grace", "3s"}}); }
  static void TearDownTestSuite();
  // Kueue, what the queues hand out, and an operator.
  static void Begin(OperatorProcess::Options options);

  // In the queue `team`; each pod asks for one CPU. It trains until the head is told to go on.
  static json Queued(const std::string& name, int cpu = 2, int gpu = 1);
  // The same with so many CPU workers, all but one of which it can do without.
  static json Elastic(const std::string& name, int cpu);
  static int CpuWorkers(const JobUnderTest& job);  // that run
  static json Workload(const JobUnderTest& job);   // null: there is none
  static bool WaitQueued(const JobUnderTest& job, const std::string& reason);
  static std::string Condition(const json& workload, const std::string& type);  // "True/Reason"

  static OperatorProcess* operator_;
  ControlPlane& plane_ = ControlPlane::Get();
};

}  // namespace hetero::testing
