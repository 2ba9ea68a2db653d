// Processes that live and do nothing: two witnesses, or they stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kHead[] = "vit-head-0";

class HangingHead : public ::testing::Test {
 protected:
  HangingHead() {
    cluster.RunJob();
    cluster.report().silent_since = cluster.now;
    cluster.Settle();
  }
  // The stream breaks, or is merely silent.
  void FallSilent() {
    cluster.report().connected = false;
    cluster.report().silent_since = cluster.now;
  }
  void BecomeUnready() {
    cluster.Change(kHead, [this](ObservedPod& pod) {
      pod.ready = false;
      pod.unready_since = cluster.now;
    });
  }
  bool Deleted() const {
    return !cluster.Has(kHead) || cluster.Pod(kHead).deletion_time.has_value();
  }

  ModelCluster cluster{Job()};
};

TEST_F(HangingHead, AFrozenHeadIsReplacedAtTheCostOfOne) {
  FallSilent();
  cluster.Advance(seconds(12));
  BecomeUnready();
  const Plan waiting = cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 0) << "either may change its mind";
  ASSERT_TRUE(waiting.requeue_after.has_value());
  EXPECT_LE(*waiting.requeue_after, seconds(15));
  cluster.Advance(seconds(15));
  const std::string uid = cluster.Pod(kHead).uid;
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().first_failure->pod, kHead);
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  EXPECT_THAT(cluster.status().first_failure->message, HasSubstr("the head hangs"));
  const Plan plan = cluster.Pass();
  ASSERT_FALSE(plan.stages.empty());
  EXPECT_EQ(std::get<DeleteChild>(plan.stages[0][0]).grace_seconds, 5) << "it will not answer";
  cluster.Vanish(kHead);
  cluster.Settle();
  EXPECT_NE(cluster.Pod(kHead).uid, uid);
  EXPECT_EQ(cluster.status().attempt, 1) << "the trainers go on";
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST_F(HangingHead, APartitionBetweenOperatorAndHeadAloneCostsNothing) {
  FallSilent();
  cluster.Advance(seconds(300));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_FALSE(Deleted());
}

TEST_F(HangingHead, ABusyHeadThatReportsIsKeptThoughItsProbesFail) {
  BecomeUnready();
  for (int i = 0; i < 100; ++i) {
    cluster.Advance(seconds(3));
    cluster.report().silent_since = cluster.now;
    cluster.Settle();
  }
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_FALSE(Deleted());
}

TEST_F(HangingHead, ANodeThatIsSilentItselfIsNoWitness) {
  FallSilent();
  BecomeUnready();
  cluster.Change(kHead, [](ObservedPod& pod) { pod.node = "n1"; });
  cluster.nodes["n1"] = {.name = "n1", .ready = false, .since = cluster.now};
  cluster.Advance(seconds(30));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
}

// A new operator has heard nothing yet: the head must fail to answer it, too.
TEST_F(HangingHead, AnOperatorThatHasJustComeAsksFirst) {
  BecomeUnready();
  cluster.Advance(seconds(300));
  cluster.report() = HeadReport{.silent_since = cluster.now, .attempt = 1};
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  cluster.Advance(seconds(15));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST_F(HangingHead, AHeadOfAnEarlierAttemptIsNoWitness) {
  BecomeUnready();
  cluster.report() = HeadReport{.silent_since = cluster.now, .attempt = 0};
  cluster.Advance(seconds(300));
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
}

// Head and workers froze before the job had begun; the head was replaced, and waits for workers
// that it has never met.
class HangingUnmet : public ::testing::Test {
 protected:
  HangingUnmet() {
    cluster.Settle();
    cluster.StartAll();
    cluster.Settle();
    cluster.head = HeadReport{.state = HeadReport::State::kWaiting,
                              .connected = true,
                              .last_heard = cluster.now,
                              .silent_since = cluster.now,
                              .attempt = 1,
                              .head_incarnation = cluster.Pod(kHead).incarnation};
  }
  void BecomeUnready() {
    cluster.Change(kWorker, [this](ObservedPod& pod) {
      pod.ready = false;
      pod.unready_since = cluster.now;
    });
  }
  bool Deleted() const {
    return !cluster.Has(kWorker) || cluster.Pod(kWorker).deletion_time.has_value();
  }
  void ExpectKept() {
    cluster.Advance(seconds(60));
    cluster.Pass();
    cluster.Pass();
    EXPECT_EQ(cluster.status().restarts, 0);
    EXPECT_FALSE(Deleted());
  }

  static constexpr char kWorker[] = "vit-cpu-0";
  ModelCluster cluster{Job()};
};

TEST_F(HangingUnmet, AFrozenWorkerIsReplaced) {
  BecomeUnready();
  const Plan waiting = cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 0);
  ASSERT_TRUE(waiting.requeue_after.has_value());
  EXPECT_LE(*waiting.requeue_after, seconds(15));
  const std::string uid = cluster.Pod(kWorker).uid;
  cluster.Advance(seconds(15));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().first_failure->pod, kWorker);
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  EXPECT_THAT(cluster.status().first_failure->message, HasSubstr("it hangs"));
  cluster.Pass();
  cluster.Vanish(kWorker);
  cluster.Pass();
  cluster.Pass();
  ASSERT_TRUE(cluster.Has(kWorker));
  EXPECT_NE(cluster.Pod(kWorker).uid, uid);
  EXPECT_EQ(cluster.status().attempt, 1);
}

// As where the network lets nobody through: whoever has not joined a head is not ready.
TEST_F(HangingUnmet, AWorkerThatNeverWasReadyIsKept) { ExpectKept(); }

TEST_F(HangingUnmet, AWorkerThatTheHeadHasMetIsTheHeadsToMiss) {
  BecomeUnready();
  const int64_t incarnation = cluster.Pod(kWorker).incarnation;
  cluster.report().members["cpu-0"] = {incarnation, /*connected=*/true, /*lost=*/false};
  ExpectKept();
}

// As the head knows it from the history of the one before.
TEST_F(HangingUnmet, AWorkerThatIsKnownAsLostAloneIsReplaced) {
  BecomeUnready();
  cluster.head->members["cpu-0"] = {cluster.Pod(kWorker).incarnation, false, /*lost=*/true};
  cluster.Advance(seconds(15));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST_F(HangingUnmet, AHeadThatIsNotHeardIsNoWitness) {
  BecomeUnready();
  cluster.report().connected = false;
  ExpectKept();
}

TEST_F(HangingUnmet, TheHeadBeforeThisOneIsNoWitness) {
  BecomeUnready();
  --cluster.report().head_incarnation;
  ExpectKept();
}

TEST_F(HangingUnmet, ANodeThatIsSilentItselfIsNoWitness) {
  BecomeUnready();
  cluster.Change(kWorker, [](ObservedPod& pod) { pod.node = "n1"; });
  cluster.nodes["n1"] = {.name = "n1", .ready = false, .since = cluster.now};
  cluster.Advance(seconds(20));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 0);
}

}  // namespace
}  // namespace hetero::plan
