#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/integration/operator/support/world.h"

// Failures, deadlines and suspension on the real control plane: what is recreated, what it costs
// and what is said of it.
namespace hetero::testing {

using std::chrono::seconds;

class Restart : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::Get();
    operator_ =
        new OperatorProcess({.arguments = {"--node-lost-grace", "5s", "--pod-kill-grace", "3s"}});
    WaitFor("the operator is ready", [] { return operator_->ready(); });
  }
  static void TearDownTestSuite() { delete operator_; }

  // Runs until told otherwise.
  static json Endless(const std::string& name, int cpu = 2, int gpu = 2) {
    return MakeJob(name, {{"steps", 1000000}, {"stepMillis", 20}}, cpu, gpu);
  }
  // Uids of all four or five pods, by name.
  static std::map<std::string, std::string> Uids(const JobUnderTest& job, int cpu = 2,
                                                 int gpu = 2) {
    std::map<std::string, std::string> uids = {{"head-0", job.PodUid("head", 0)}};
    for (int i = 0; i < cpu; ++i) uids["cpu-" + std::to_string(i)] = job.PodUid("cpu", i);
    for (int i = 0; i < gpu; ++i) uids["gpu-" + std::to_string(i)] = job.PodUid("gpu", i);
    return uids;
  }
  // Waits until the pods whose uid differs from `before` are exactly `changed`, all run and all are
  // registered.
  void ExpectReplaced(const JobUnderTest& job, const std::map<std::string, std::string>& before,
                      std::set<std::string> changed) {
    WaitFor(
        "exactly " + ::testing::PrintToString(changed) + " replaced",
        [&] {
          std::set<std::string> now;
          for (const auto& [name, uid] : Uids(job)) {
            if (uid.empty()) return false;
            if (uid != before.at(name)) now.insert(name);
          }
          return now == changed;
        },
        seconds(60), [&] { return job.Describe(); });
    EXPECT_TRUE(job.WaitPods(5));
    WaitFor(
        "all registered", [&] { return job.Status()["registered"] == "4/4"; }, seconds(60),
        [&] { return job.Describe(); });
  }

  inline static OperatorProcess* operator_ = nullptr;
  ControlPlane& plane_ = ControlPlane::Get();
};

}  // namespace hetero::testing
