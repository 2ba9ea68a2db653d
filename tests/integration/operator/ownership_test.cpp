#include <gtest/gtest.h>

#include "api/labels.h"
#include "tests/integration/operator/restart_fixture.h"

// A tenant of another namespace who has read a job's uid, on the real control plane.
namespace hetero::testing {
namespace {

class Ownership : public Restart {
 protected:
  // With the labels of a real child of the job.
  static json ForgedMetadata(const JobUnderTest& job, const std::string& name,
                             const std::string& role, const std::string& attempt) {
    return {{"name", name},
            {"labels",
             {{api::kManagedByLabel, api::kManagedByValue},
              {api::kJobNameLabel, job.name()},
              {api::kJobUidLabel, job.uid()},
              {api::kRoleLabel, role},
              {api::kReplicaIndexLabel, "0"},
              {api::kAttemptLabel, attempt}}}};
  }
  void ForgePod(const JobUnderTest& job, const std::string& name_space, const std::string& name,
                const std::string& attempt) {
    const json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", ForgedMetadata(job, name, "gpu", attempt)},
                      {"spec", {{"containers", {{{"name", "runtime"}, {"image", "any"}}}}}}};
    plane_.MustKubectl({"create", "-n", name_space, "-f", "-"}, pod.dump());
  }
};

TEST_F(Ownership, NobodyOfAnotherNamespaceTouchesAJob) {
  TestNamespace victims("victim");
  TestNamespace others("attacker");  // in the order of the alphabet it comes first
  JobUnderTest job(victims.name(), Endless("prey"));
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  const json address = job.Status()["headAddress"];

  ForgePod(job, others.name(), "prey-gpu-0", "999");
  ForgePod(job, others.name(), "prey-gpu-1", "2147483647");
  ForgePod(job, others.name(), "prey-cpu-0", "0");  // the server takes no "-5"
  ForgePod(job, victims.name(), "stranger", "999");
  const json service = {{"apiVersion", "v1"},
                        {"kind", "Service"},
                        {"metadata", ForgedMetadata(job, "prey-head", "head", "1")},
                        {"spec", {{"ports", {{{"port", 7070}}}}}}};
  plane_.MustKubectl({"create", "-n", others.name(), "-f", "-"}, service.dump());

  // A pass over the job after all of that.
  job.PatchSpec({{"runPolicy", {{"startupDeadlineSeconds", 599}}}});
  WaitFor(
      "a pass", [&] { return job.Status()["observedGeneration"] == 2; }, seconds(60),
      [&] { return job.Describe(); });
  EXPECT_EQ(job.Status()["attempt"], 1) << job.Describe();
  EXPECT_EQ(job.Status()["headAddress"], address);
  EXPECT_EQ(Uids(job), before);

  plane_.MustKubectl({"delete", "pod", "stranger", "-n", victims.name(), "--now"});
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(job.WaitIs("Suspended")) << job.Describe();
  job.PatchSpec({{"runPolicy", {{"suspend", false}}}});
  WaitFor(
      "the second attempt runs", [&] { return job.Status()["attempt"] == 2 && job.Is("Running"); },
      seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(plane_.Objects(kube::kPods, others.name()).size(), 3u) << "what is theirs stays";
}

}  // namespace
}  // namespace hetero::testing
