// Pods that are deleted and containers that are killed in the middle of training. What that may
// cost is in docs/kubernetes.md; it never costs a sample.
#include <gtest/gtest.h>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

// Each role is struck twice: `kubectl delete pod`, and later kill -9 inside another's container.
class Kill : public ::testing::TestWithParam<const char*> {};

TEST_P(Kill, CostsNothingOfTheStream) {
  Installation::Get();
  const std::string role = GetParam();
  json manifest = SlowJob("kill");
  manifest["spec"]["training"]["epochs"] = 4;  // long enough for two blows
  const std::string digest = LocalReport(manifest).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  JobNamespace space("kill-" + role);
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(WaitStep(job, 5));
  const std::string deleted = job.PodUid(role, 0);
  ControlPlane::Get().MustKubectl(
      {"delete", "pod", job.PodKey(role, 0).name, "-n", space.name(), "--wait=false"});
  ASSERT_TRUE(WaitReplaced(job, role, 0, deleted));
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << "a deletion is nobody's failure\n"
                                                  << job.Describe();
  if (Nodes::reachable()) {
    ASSERT_TRUE(WaitStep(job, StepOf(job) + 5)) << "it goes on after the first blow";
    const int index = role == "head" ? 0 : 1;
    const std::string killed = job.PodUid(role, index), name = job.PodKey(role, index).name;
    Nodes::KillRuntime(space.name(), name);
    ASSERT_TRUE(WaitReplaced(job, role, index, killed));
    const json status = job.Status();
    EXPECT_EQ(status["firstFailure"]["pod"], name) << status.dump(1);
    EXPECT_EQ(status["firstFailure"]["exitCode"], 137) << status.dump(1);
    EXPECT_EQ(status.value("restarts", 0), 1) << "a failure costs one restart\n" << status.dump(1);
  }
  ExpectSucceededWithDigest(job, digest);
}

INSTANTIATE_TEST_SUITE_P(, Kill, ::testing::Values("cpu", "head", "gpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace hetero::testing
