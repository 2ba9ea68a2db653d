// Heads that freeze on a node: the operator's stream falls silent and the kubelet finds them
// unready.
#include <gtest/gtest.h>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

class FrozenHead : public ::testing::Test {
 protected:
  void SetUp() override {
    Installation::Get();
    if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
    digest_ = LocalReport(SlowJob("frozen")).value("streamDigest", "");
    ASSERT_FALSE(digest_.empty());
  }
  static void ExpectReplaced(const JobUnderTest& job, const std::string& frozen) {
    WaitFor(
        "another head",
        [&] {
          const std::string now = job.PodUid("head", 0);
          return !now.empty() && now != frozen;
        },
        seconds(180), [&] { return job.Describe(); });
    const json status = job.Status();
    EXPECT_EQ(status.value("restarts", 0), 1) << status.dump(1);
    EXPECT_EQ(status["firstFailure"]["reason"], "Lost") << status.dump(1);
    EXPECT_EQ(status["firstFailure"]["role"], "head") << status.dump(1);
  }
  std::string digest_;
};

TEST_F(FrozenHead, BeforeTheFirstStepItIsReplaced) {
  JobNamespace space("frozen-early");
  JobUnderTest job(space.name(), SlowJob("frozen"));
  // Heard and ready, before or while the others register.
  WaitFor(
      "the head is ready",
      [&] {
        const json head = job.Pod("head", 0);
        if (!head.is_object()) return false;
        for (const json& status : head["status"].value("containerStatuses", json::array())) {
          if (status.value("ready", false)) return true;
        }
        return false;
      },
      seconds(180), [&] { return job.Describe(); });
  const std::string head = job.PodUid("head", 0);
  Nodes::FreezeRuntime(space.name(), job.PodKey("head", 0).name);
  ExpectReplaced(job, head);
  ExpectSucceededWithDigest(job, digest_);
}

TEST_F(FrozenHead, InTheMiddleItIsReplacedAndNoStepIsLost) {
  json manifest = SlowJob("frozen");
  manifest["spec"]["training"]["epochs"] = 10;  // longer than it takes to notice
  const std::string digest = LocalReport(manifest).value("streamDigest", "");
  JobNamespace space("frozen-middle");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(WaitStep(job, 10));
  const std::string head = job.PodUid("head", 0), trainer = job.PodUid("gpu", 0);
  Nodes::FreezeRuntime(space.name(), job.PodKey("head", 0).name);
  ExpectReplaced(job, head);
  EXPECT_EQ(job.PodUid("gpu", 0), trainer) << "the trainers go on";
  ExpectSucceededWithDigest(job, digest);
  EXPECT_EQ(job.Status().value("attempt", 0), 1) << job.Status().dump(1);
}

TEST_F(FrozenHead, AfterTheLastStepTheEndIsReached) {
  JobNamespace space("frozen-late");
  JobUnderTest job(space.name(), SlowJob("frozen"));
  ASSERT_TRUE(WaitStep(job, 1));
  // It will not hear of the last step: the job is over before anybody can notice.
  ASSERT_TRUE(WaitStep(job, job.Status()["progress"].value("totalSteps", 20) * 4 / 5));
  Nodes::FreezeRuntime(space.name(), job.PodKey("head", 0).name);
  ExpectSucceededWithDigest(job, digest_);
}

}  // namespace
}  // namespace hetero::testing
