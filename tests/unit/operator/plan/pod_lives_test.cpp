#include "operator/plan/pod_lives.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/plan/job_builder.h"

namespace hetero::plan {
namespace {

using std::chrono::seconds;

const base::WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

class PodLivesTest : public ::testing::Test {
 protected:
  static base::WallTime At(int64_t second) { return kNoon + seconds(second); }

  std::shared_ptr<ObservedPod> Bound(const std::string& uid, int64_t second) {
    auto pod = std::make_shared<ObservedPod>();
    pod->uid = uid;
    pod->role = "gpu";
    pod->node = "a";
    pod->bound = At(second);
    return pod;
  }
  ObservedLives See(int64_t second, std::vector<std::shared_ptr<const ObservedPod>> pods,
                    std::vector<RemovedPod> removed = {}) {
    return lives_.See(job_.job().spec, account_, pods, removed, nodes_, At(second));
  }
  // The account that the last See() led to; whether the answer to its write comes back.
  void Write(bool answered) {
    api::JobCost next;
    next.as_of = account_ ? account_->as_of + seconds(1) : kNoon;
    lives_.Offer(next);
    if (!answered) return;
    account_ = next;
    lives_.Stored();
  }

  Job job_ = Job().Prices("", "", "36");
  std::map<std::string, ObservedNode> nodes_;
  std::optional<api::JobCost> account_;
  PodLives lives_;
};

TEST_F(PodLivesTest, DepartedUntilAStatusHasThem) {
  See(10, {Bound("x", 0)});
  Write(true);
  for (int second : {20, 30}) {
    const ObservedLives seen = See(second, {});
    EXPECT_TRUE(seen.continuous);
    ASSERT_EQ(seen.departed.size(), 1U);
    EXPECT_EQ(seen.departed[0].end, At(20)) << "it went when it was first missed";
    EXPECT_EQ(seen.departed[0].uncertain, seconds(10));
    EXPECT_EQ(seen.departed[0].price, (Price{36'000'000, 36'000'000}));
  }
  Write(true);
  EXPECT_TRUE(See(40, {}).departed.empty());
  EXPECT_TRUE(See(50, {Bound("x", 0)}).there.empty()) << "an old list brings it back";
}

TEST_F(PodLivesTest, AWriteWhoseAnswerWasLostIsRecognised) {
  See(10, {Bound("x", 0), Bound("y", 0)});
  Write(true);
  See(20, {Bound("y", 0)});
  const api::JobCost lost{.as_of = account_->as_of + seconds(1)};
  Write(false);
  EXPECT_EQ(See(30, {}).departed.size(), 2U) << "nobody knows yet";
  account_ = lost;  // the watch brings it
  const ObservedLives seen = See(40, {});
  ASSERT_EQ(seen.departed.size(), 1U) << "y went later, and is in no status";
  EXPECT_EQ(seen.departed[0].end, At(30));
  EXPECT_TRUE(seen.continuous);
}

TEST_F(PodLivesTest, AnAccountOfSomebodyElseIsNotFollowedOn) {
  account_ = api::JobCost{.as_of = kNoon};
  EXPECT_FALSE(See(10, {Bound("x", 0)}).continuous) << "this process has just begun";
  Write(true);
  EXPECT_TRUE(See(20, {Bound("x", 0)}).continuous);
  account_->as_of += seconds(7);
  EXPECT_FALSE(See(30, {Bound("x", 0)}).continuous);
}

TEST_F(PodLivesTest, TheLastWordOfARemovedPodCounts) {
  const auto pod = Bound("x", 0);
  See(10, {pod});
  auto ended = std::make_shared<ObservedPod>(*pod);
  ended->runtime = ObservedPod::Runtime::kTerminated;
  ended->exit_code = 1;
  ended->finished = At(15) + std::chrono::milliseconds(300);
  // It is missed before its last word has come.
  EXPECT_EQ(See(20, {}).departed.at(0).end, At(20));
  const ObservedLives seen = See(21, {}, {{.last = ended, .time = At(20)}});
  ASSERT_EQ(seen.departed.size(), 1U);
  EXPECT_EQ(seen.departed[0].end, At(15));
  EXPECT_EQ(seen.departed[0].uncertain, seconds(0));
  EXPECT_TRUE(seen.departed[0].price);
  // And of one that came and went between two looks.
  auto other = std::make_shared<ObservedPod>(*ended);
  other->uid = "y";
  EXPECT_EQ(See(30, {}, {{.last = other, .time = At(29)}}).departed.size(), 2U);
}

TEST_F(PodLivesTest, DoubtGoesBackToWhereNobodySaw) {
  auto told = Bound("x", 0);
  told->deletion_asked = At(60);
  See(70, {told});
  EXPECT_EQ(See(100, {}).departed.at(0).uncertain, seconds(40));
  Write(true);
  nodes_["a"] = {.name = "a", .ready = false, .since = At(130)};
  See(200, {Bound("y", 120)});
  nodes_.clear();
  EXPECT_EQ(See(300, {}).departed.at(0).uncertain, seconds(170));
  Write(true);
  See(300, {Bound("z", 297)});
  EXPECT_EQ(See(301, {}).departed.at(0).uncertain, seconds(4)) << "no more than it lived";
}

TEST_F(PodLivesTest, OneThatItsNodeRejectedEndedWithItsLastCondition) {
  auto rejected = Bound("x", 50);
  rejected->phase = "Failed";
  rejected->failed_by = At(51);
  EXPECT_EQ(See(100, {rejected}).there.at(0).end, At(51));
}

}  // namespace
}  // namespace hetero::plan
