// Autoscaling from end to end: a real head measures real workers and asks for more or fewer, the
// operator's follower hears it over the status port, the operator's planner decides, and its pods
// run as processes of this machine. Only the API server is a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "operator/reconcile/effects.h"
#include "operator/reconcile/head_follower.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/support/jobs.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero {
namespace {

using plan::ChildKind;
using plan::Effect;
using plan::ModelCluster;
using plan::ObservedPod;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::LocalPods;
using ::testing::StartsWith;

constexpr char kKey[] = "team-a/small";
constexpr std::chrono::seconds kDeadline(240);

// An operator without an API server, and a kubelet for its pods.
class LocalOperator {
 public:
  explicit LocalOperator(const std::vector<std::string>& overrides)
      : pods_(testing::SmallJob(overrides)),
        cluster_(plan::Job()),
        follower_(base::Clock::Real(), pods_.operator_identity(), [](const std::string&) {}) {
    cluster_.Change([this](plan::ObservedJob& object) { object.job = pods_.job(); });
  }

  // One pass, and what a kubelet does meanwhile.
  void Pass() {
    cluster_.now = base::Clock::Real().WallNow();
    cluster_.head = follower_.Report(kKey);
    NoticeEnds();
    plan::Plan plan = MakePlan(cluster_.Look(), cluster_.settings, cluster_.now);
    if (plan.write_status) cluster_.WriteStatus(plan, cluster_.job->resource_version);
    for (const auto& stage : plan.stages) {
      for (const Effect& effect : stage) Carry(effect);
    }
    for (const plan::Event& event : plan.events) notes_.push_back(event.note);
    cluster_.settled.insert(plan.settled.begin(), plan.settled.end());
    follower_.Follow(kKey, plan.follow);
    for (const api::RoleCounts& role : cluster_.status().role_statuses) {
      if (role.name == "cpu" && role.desired > 0) desired_.insert(role.desired);
    }
  }

  // Passes until `holds`.
  template <typename Condition>
  bool Wait(const Condition& holds) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (std::chrono::steady_clock::now() < end) {
      Pass();
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "desired " << ::testing::PrintToString(desired_) << "\n"
                  << ::testing::PrintToString(notes_) << "\n"
                  << ::testing::PrintToString(cluster_.calls);
    return false;
  }

  // CPU workers that the head has and the status tells.
  bool Has(int32_t workers) const {
    const auto report = follower_.Report(kKey);
    if (!report || !report->roles.contains("cpu")) return false;
    for (const api::RoleCounts& role : cluster_.status().role_statuses) {
      if (role.name == "cpu" && (role.desired != workers || role.registered != workers)) {
        return false;
      }
    }
    return report->roles.at("cpu").registered == workers;
  }

  LocalPods& pods() { return pods_; }
  const ModelCluster& cluster() const { return cluster_; }
  // Every number of CPU workers that the status has ever wanted.
  const std::set<int32_t>& desired() const { return desired_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  static std::string ShortName(const ObservedPod& pod) {
    return pod.role + "-" + std::to_string(pod.index);
  }

  void Carry(const Effect& effect) {
    if (const auto* exit = std::get_if<plan::ReportExit>(&effect)) {
      follower_.ReportExit(kKey, *exit);
      return;
    }
    const auto* pod = std::get_if<plan::CreatePod>(&effect);
    const auto* creation = std::get_if<plan::CreateChild>(&effect);
    const auto* deletion = std::get_if<plan::DeleteChild>(&effect);
    const std::string name = pod != nullptr ? cluster_.NameOf(*pod) : "";
    const bool there = pod != nullptr && cluster_.Has(name);
    ASSERT_TRUE(cluster_.Carry(effect));
    if (pod != nullptr && !there) {
      pods_.StartPod(reconcile::RenderPod(*pod, cluster_.job->job, cluster_.settings));
      cluster_.Start(name);
    } else if (deletion != nullptr && deletion->kind == ChildKind::kPod &&
               cluster_.Has(deletion->name)) {
      pods_.Run(ShortName(cluster_.Pod(deletion->name))).Signal(SIGTERM);
    }
    // What the API server and the trust of LocalPods would have put there.
    if (std::holds_alternative<plan::CreateTrust>(effect)) {
      auto object = std::make_shared<plan::ObservedObject>(*cluster_.config_map);
      object->ca_pem = pods_.trust().ca_pem;
      cluster_.config_map = std::move(object);
    } else if (creation != nullptr && creation->kind == ChildKind::kService) {
      auto object = std::make_shared<plan::ObservedObject>(*cluster_.service);
      object->cluster_ip = pods_.HeadAddress();
      cluster_.service = std::move(object);
    }
  }

  void NoticeEnds() {
    std::vector<std::string> names;
    for (const auto& [name, pod] : cluster_.pods) names.push_back(name);
    for (const std::string& name : names) {
      const ObservedPod& pod = cluster_.Pod(name);
      if (pod.ended() || pods_.Run(ShortName(pod)).running()) continue;
      const int code = pods_.Run(ShortName(pod)).Wait(kDeadline).exit_code;
      if (pod.deletion_time) {
        cluster_.Vanish(name);
      } else {
        cluster_.Exit(name, code, "", pods_.TerminationMessage(ShortName(pod)));
      }
    }
  }

  LocalPods pods_;
  ModelCluster cluster_;
  reconcile::HeadFollower follower_;
  std::set<int32_t> desired_;
  std::vector<std::string> notes_;
};

std::vector<std::string> Autoscaled(std::vector<std::string> more) {
  more.insert(more.end(), {"autoscaling=Enabled", "training.epochs=1000000", "roles.gpu.replicas=1",
                           "runPolicy.maxRestarts=0"});
  return more;
}

// A batch costs a worker 40 ms and the trainer next to nothing: more would be used, three are
// allowed.
TEST(AutoscaledPods, TheThirdWorkerThatTheHeadAsksForIsCreatedAndNoFourth) {
  LocalOperator op(Autoscaled({"pipeline=[{op: Delay, milliseconds: 40}, {op: Normalize}]",
                               "training.batchSizePerWorker=8", "roles.cpu.replicas=2",
                               "roles.cpu.minReplicas=1", "roles.cpu.maxReplicas=3"}));
  ASSERT_TRUE(op.Wait([&] { return op.Has(2); }));
  ASSERT_TRUE(op.Wait([&] { return op.Has(3); }));
  EXPECT_THAT(op.notes(), Contains(StartsWith("Role cpu: from 2 to 3 replicas: ")));
  // The head goes on asking; the bounds hold.
  for (int i = 0; i < 20; ++i) {
    op.Pass();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(op.Has(3));
  EXPECT_LE(*op.desired().rbegin(), 3);
  EXPECT_GE(*op.desired().begin(), 1);
  EXPECT_EQ(op.cluster().CountOf("create small-cpu-2"), 1u);
  EXPECT_EQ(op.cluster().CountOf("create small-cpu-3"), 0u);
  EXPECT_EQ(op.cluster().status().restarts, 0);
  EXPECT_EQ(op.cluster().status().attempt, 1);
  EXPECT_TRUE(op.pods().Run("gpu-0").running());
}

// The trainer is the slow one, and one worker would do; two have to stay.
TEST(AutoscaledPods, WorkersThatNobodyNeedsGoButNotBelowTheMinimum) {
  LocalOperator op(
      Autoscaled({"training.model.name=resnet18", "training.batchSizePerWorker=32",
                  "roles.cpu.replicas=3", "roles.cpu.minReplicas=2", "roles.cpu.maxReplicas=3"}));
  ASSERT_TRUE(op.Wait([&] { return op.Has(3); }));
  ASSERT_TRUE(op.Wait([&] { return op.Has(2); }));
  ASSERT_TRUE(op.Wait([&] { return !op.cluster().Has("small-cpu-2"); }));
  EXPECT_THAT(op.notes(), Contains(StartsWith("Role cpu: from 3 to 2 replicas")));
  EXPECT_GE(*op.desired().begin(), 2);
  EXPECT_EQ(op.cluster().CountOf("delete small-cpu-2"), 1u);
  EXPECT_EQ(op.cluster().CountOf("delete small-cpu-1"), 0u);
  EXPECT_EQ(op.cluster().status().restarts, 0);
  EXPECT_TRUE(op.pods().Run("gpu-0").running());
  EXPECT_TRUE(op.pods().Run("cpu-0").running());
}

}  // namespace
}  // namespace hetero
