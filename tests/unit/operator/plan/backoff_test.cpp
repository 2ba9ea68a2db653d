// How fast the slots of pods that end soon are filled again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As kubelets do it: the pod fails before any of its containers has run.
void Reject(ModelCluster& cluster, const std::string& pod, const std::string& reason,
            const std::string& message = "") {
  cluster.Change(pod, [&](ObservedPod& p) {
    p.node = "node-1";
    p.phase = "Failed";
    p.reason = reason;
    p.message = message;
  });
}

// The job has lost its pod: how long until there is another one?
base::Duration WaitFor(ModelCluster& cluster, const std::string& pod) {
  const base::WallTime from = cluster.now;
  cluster.Settle();
  while (!cluster.Has(pod) && cluster.now - from < minutes(30)) {
    const Plan plan = cluster.Pass();
    if (cluster.Has(pod)) break;
    EXPECT_TRUE(plan.requeue_after) << "nobody will look again";
    if (!plan.requeue_after) break;
    cluster.Advance(*plan.requeue_after);
    cluster.Settle();
  }
  return cluster.now - from;
}

// Its process fails, and one in its place runs for a second: how long until it was made?
base::Duration FailAgain(ModelCluster& cluster, const std::string& pod) {
  cluster.Exit(pod, 1);
  const base::Duration waited = WaitFor(cluster, pod);
  cluster.Start(pod);
  cluster.HeadSays(HeadReport::State::kRunning);
  cluster.Advance(seconds(1));
  return waited;
}

TEST(Backoff, APodThatFailsAgainAndAgainWaitsLongerEachTime) {
  ModelCluster cluster{Job().MaxRestarts(100)};
  cluster.RunJob();
  std::vector<int64_t> waits;
  for (int i = 0; i < 9; ++i) {
    waits.push_back(std::chrono::duration_cast<seconds>(FailAgain(cluster, "vit-cpu-0")).count());
  }
  EXPECT_THAT(waits, ElementsAre(0, 10, 20, 40, 80, 160, 300, 300, 300));
}

// Of the machine that the operator runs on, by an hour.
TEST(Backoff, AClockThatIsSetBackMakesNoWaitLonger) {
  ModelCluster cluster{Job().MaxRestarts(100)};
  cluster.RunJob();
  FailAgain(cluster, "vit-cpu-0");
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  ASSERT_FALSE(cluster.Has("vit-cpu-0"));
  cluster.now -= std::chrono::hours(1);
  EXPECT_LE(WaitFor(cluster, "vit-cpu-0"), minutes(5));
}

// By the machine's time service, say: a wait that has just begun is not over for that.
TEST(Backoff, AClockThatIsSetBackByASecondEndsNoWait) {
  ModelCluster cluster{Job().MaxRestarts(100)};
  cluster.RunJob();
  for (int i = 0; i < 20 && FailAgain(cluster, "vit-cpu-0") < minutes(5); ++i) {
  }
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  ASSERT_FALSE(cluster.Has("vit-cpu-0"));
  cluster.now -= seconds(1);
  EXPECT_GE(WaitFor(cluster, "vit-cpu-0"), minutes(4));
}

TEST(Backoff, AfterALongLifeThereIsNoWait) {
  ModelCluster cluster{Job().MaxRestarts(100)};
  cluster.RunJob();
  for (int i = 0; i < 4; ++i) {
    cluster.Exit("vit-cpu-0", 1);
    WaitFor(cluster, "vit-cpu-0");
    cluster.Start("vit-cpu-0");
  }
  cluster.Advance(minutes(2));
  for (int i = 0; i < 2; ++i) {
    cluster.Exit("vit-cpu-0", 1);
    EXPECT_EQ(WaitFor(cluster, "vit-cpu-0"), base::Duration::zero()) << i;
    cluster.Start("vit-cpu-0");
  }
}

TEST(Backoff, OnlyTheSlotThatFailsWaits) {
  ModelCluster cluster{Job().Cpus(2).MaxRestarts(100)};
  cluster.RunJob();
  for (int i = 0; i < 2; ++i) {
    cluster.Exit("vit-cpu-0", 1);
    cluster.Settle();
    if (cluster.Has("vit-cpu-0")) cluster.Start("vit-cpu-0");
  }
  EXPECT_FALSE(cluster.Has("vit-cpu-0"));
  cluster.Exit("vit-cpu-1", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-1").phase, "Pending");
}

TEST(Backoff, WhyAPodIsNotMadeYetIsSaid) {
  ModelCluster cluster{Job().MaxRestarts(100)};
  cluster.Settle();
  for (int i = 0; i < 2; ++i) {
    Reject(cluster, "vit-gpu-1", "UnexpectedAdmissionError");
    cluster.Settle();
  }
  EXPECT_FALSE(cluster.Has("vit-gpu-1"));
  EXPECT_THAT(cluster.Condition(ConditionType::kRegistered).message,
              HasSubstr("vit-gpu-1: ended 2 times soon after it was made; made again at 2026-"));
}

// A device plugin restarts, and the kubelet rejects what is bound to its node meanwhile.
TEST(Backoff, ARejectionByTheKubeletCostsNoRestart) {
  struct Case {
    const char* reason;
    const char* message;
  };
  for (const Case& one :
       {Case{"UnexpectedAdmissionError", "Allocate failed"}, Case{"OutOfcpu", ""},
        Case{"OutOfmemory", ""}, Case{"OutOfpods", ""}, Case{"OutOfnvidia.com/gpu", ""},
        Case{"NodeAffinity", ""}, Case{"TopologyAffinityError", ""},
        Case{"SomethingOfANewerKubelet", "Pod was rejected: no such thing"}}) {
    SCOPED_TRACE(one.reason);
    ModelCluster cluster{Job().MaxRestarts(0)};
    cluster.Settle();
    for (int i = 0; i < 4; ++i) {
      Reject(cluster, "vit-gpu-0", one.reason, one.message);
      WaitFor(cluster, "vit-gpu-0");
    }
    EXPECT_FALSE(cluster.status().finished());
    EXPECT_EQ(cluster.status().restarts, 0);
    EXPECT_EQ(cluster.status().attempt, 1);
    EXPECT_EQ(cluster.Pod("vit-gpu-0").phase, "Pending");
  }
}

// The same words of a container are its own.
TEST(Backoff, AContainerThatEndsWithSuchAReasonHasFailed) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-gpu-0", 1, "UnexpectedAdmissionError");
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(Backoff, ANodeThatRejectedAPodIsAvoidedForAWhile) {
  ModelCluster cluster{Job().MaxRestarts(0).StartupDeadline(3600)};
  cluster.Settle();
  const auto avoided = [&cluster] {
    cluster.Vanish("vit-cpu-0");
    const Plan plan = cluster.Pass();
    for (const Stage& stage : plan.stages) {
      if (const auto* pod = std::get_if<CreatePod>(&stage.front())) {
        return pod->origin->avoided_nodes;
      }
    }
    ADD_FAILURE() << "no pod was made";
    return std::vector<std::string>();
  };
  EXPECT_THAT(avoided(), IsEmpty());
  Reject(cluster, "vit-gpu-0", "OutOfcpu");
  cluster.Settle();
  EXPECT_THAT(avoided(), ElementsAre("node-1"));
  cluster.Advance(minutes(10));
  EXPECT_THAT(avoided(), IsEmpty());
}

// Evictions are free, and so they went on at full speed.
TEST(Backoff, FreeDisruptionsAreSlowedDownToo) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.Exit("vit-cpu-0", 137, "Evicted");
  EXPECT_EQ(WaitFor(cluster, "vit-cpu-0"), base::Duration::zero());
  cluster.Start("vit-cpu-0");
  cluster.Exit("vit-cpu-0", 137, "Evicted");
  EXPECT_EQ(WaitFor(cluster, "vit-cpu-0"), seconds(10));
  EXPECT_EQ(cluster.status().restarts, 0);
}

// Code 130 of one trainer costs no restart, and so it went round at full speed.
TEST(Backoff, ATrainerThatLeavesAgainAndAgainWaitsLongerEachTimeForFree) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  std::vector<int64_t> waits;
  for (int i = 0; i < 5; ++i) {
    cluster.Exit("vit-gpu-1", 130);
    waits.push_back(std::chrono::duration_cast<seconds>(WaitFor(cluster, "vit-gpu-1")).count());
    cluster.Start("vit-gpu-1");
    cluster.HeadSays(HeadReport::State::kRunning);
    cluster.Advance(seconds(1));
  }
  EXPECT_THAT(waits, ElementsAre(0, 10, 20, 40, 80));
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().attempt, 1);
  // One that trained for a while in between is back at once.
  cluster.Advance(minutes(2));
  cluster.Exit("vit-gpu-1", 130);
  EXPECT_EQ(WaitFor(cluster, "vit-gpu-1"), base::Duration::zero());
}

// In a new attempt the others do not wait for the one that fails.
TEST(Backoff, AGangIsMadeAtOnceButForThePodThatFails) {
  ModelCluster cluster{Job().MaxRestarts(100).Scope(2, api::RestartScope::kGang)};
  cluster.RunJob();
  for (int i = 0; i < 2; ++i) {
    cluster.Exit("vit-gpu-0", 1);
    cluster.Settle();
    cluster.VanishTerminating();
    cluster.Settle();
    cluster.StartAll();
    cluster.Settle();
  }
  EXPECT_EQ(cluster.status().attempt, 3);
  EXPECT_EQ(cluster.pods.size(), 3u);
  EXPECT_FALSE(cluster.Has("vit-gpu-0"));
  cluster.Advance(seconds(10));
  cluster.Settle();
  EXPECT_EQ(cluster.pods.size(), 4u);
}

// What a finalizer holds, no deletion ends: the planner waits and says for whom.
TEST(Backoff, APodThatAFinalizerHoldsIsNotForcedAgainAndAgain) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Delete("vit-cpu-0");
  cluster.Change("vit-cpu-0", [&cluster](ObservedPod& pod) {
    pod.deletion_time = cluster.now;
    pod.forced = true;
    pod.waiting_reason = "Finalizers";
    pod.waiting_message = "held by finalizers (example.com/keep): who set them has to remove them";
  });
  cluster.calls.clear();
  for (int i = 0; i < 20; ++i) {
    cluster.Advance(minutes(1));
    cluster.report().last_step_time = cluster.now;
    cluster.Settle();
  }
  for (const std::string& call : cluster.calls) EXPECT_EQ(call, "status");
  cluster.Vanish("vit-cpu-0");
  cluster.Settle();
  EXPECT_TRUE(cluster.Has("vit-cpu-0"));
}

}  // namespace
}  // namespace hetero::plan
