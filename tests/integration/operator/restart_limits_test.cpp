#include <gtest/gtest.h>

#include "tests/integration/operator/restart_fixture.h"

namespace hetero::testing {
namespace {

TEST_F(Restart, StartupDeadlineNamesWhoIsMissingAndWhy) {
  TestNamespace space("startup");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["startupDeadlineSeconds"] = 20;
  RoleOf(manifest, "gpu")["template"]["spec"]["containers"] =
      json::array({{{"name", "runtime"}, {"resources", {{"requests", {{"cpu", "1000"}}}}}}});
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/waiting", "ImagePullBackOff");
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "the reasons are told before the deadline",
      [&] {
        const std::string message = job.Message("Registered");
        return message.find("job-gpu-0") != std::string::npos &&
               message.find("Insufficient cpu") != std::string::npos;
      },
      seconds(60), [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "StartupDeadlineExceeded");
  const std::string message = job.Message("Failed");
  EXPECT_NE(message.find("job-gpu-0"), std::string::npos) << message;
  EXPECT_NE(message.find("Insufficient cpu"), std::string::npos) << message;
  EXPECT_NE(message.find("ImagePull"), std::string::npos) << message;
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, RegistrationThatNeverComesIsNamed) {
  TestNamespace space("register");
  json manifest = MakeJob("job", {{"steps", 10}, {"neverRegister", json::array({"cpu-1"})}}, 2, 2);
  manifest["spec"]["runPolicy"]["startupDeadlineSeconds"] = 20;
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "who is missing is told",
      [&] { return job.Message("Registered").find("job-cpu-1") != std::string::npos; }, seconds(60),
      [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_NE(job.Message("Failed").find("job-cpu-1"), std::string::npos);
}

TEST_F(Restart, ActiveDeadline) {
  TestNamespace space("deadline");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["activeDeadlineSeconds"] = 4;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "DeadlineExceeded");
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, StallRestartsTheGang) {
  TestNamespace space("stall");
  json manifest =
      MakeJob("job", {{"steps", 1000000}, {"stepMillis", 20}, {"stallAtStep", 20}}, 2, 2);
  manifest["spec"]["runPolicy"]["stallTimeoutSeconds"] = 3;
  manifest["spec"]["runPolicy"]["maxRestarts"] = 1;
  JobUnderTest job(space.name(), manifest);
  WaitFor(
      "the attempt is raised", [&] { return job.Status().value("attempt", 0) == 2; }, seconds(60),
      [&] { return job.Describe(); });
  ASSERT_TRUE(job.WaitIs("Failed")) << "the second stall exceeds the budget";
}

TEST_F(Restart, LostTrainerIsRecreated) {
  TestNamespace space("lost");
  // Held until it has been looked at: on a busy machine the loss comes first otherwise.
  const json script = {{"steps", 1000000},
                       {"stepMillis", 20},
                       {"holdAtStep", 10},
                       {"loseMember", "gpu-1"},
                       {"loseAtStep", 20}};
  JobUnderTest job(space.name(), MakeJob("job", script, 2, 2));
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  job.Continue();
  ExpectReplaced(job, before, {"gpu-1"});
  EXPECT_EQ(job.Status()["restarts"], 1) << job.Status().dump(1);
}

TEST_F(Restart, ScalingCpuWorkersWhileRunning) {
  TestNamespace space("scale");
  json manifest = Endless("job");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  json roles = manifest["spec"]["roles"];
  roles[1]["replicas"] = 4;
  job.PatchSpec({{"roles", roles}});
  EXPECT_TRUE(job.WaitPods(7));
  roles[1]["replicas"] = 1;
  job.PatchSpec({{"roles", roles}});
  EXPECT_TRUE(job.WaitPods(4));
  EXPECT_TRUE(job.Is("Running"));
  EXPECT_EQ(job.Status().value("restarts", 0), 0);
}

TEST_F(Restart, SuspendAndResume) {
  TestNamespace space("suspend");
  for (const char* phase : {"created", "waiting", "running"}) {
    SCOPED_TRACE(phase);
    json script = {{"steps", 1000000}, {"stepMillis", 20}};
    if (phase == std::string("waiting")) script["neverRegister"] = json::array({"cpu-1"});
    json manifest = MakeJob(phase, script, 2, 2);
    if (phase == std::string("created")) manifest["spec"]["runPolicy"]["suspend"] = true;
    JobUnderTest job(space.name(), manifest);
    if (phase == std::string("waiting")) job.WaitPods(5);
    if (phase == std::string("running")) job.WaitIs("Running");
    job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
    ASSERT_TRUE(job.WaitIs("Suspended"));
    for (const std::string& child : job.Children()) {
      EXPECT_NE(child.substr(0, 5), "pods/") << child;
    }
    EXPECT_FALSE(job.Is("Running"));
    const json before = job.Status();
    if (phase == std::string("waiting")) {
      plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script",
                      R"({"steps": 1000000, "stepMillis": 20})");
    }
    job.PatchSpec({{"runPolicy", {{"suspend", false}}}});
    ASSERT_TRUE(job.WaitIs("Running"));
    EXPECT_FALSE(job.Is("Suspended"));
    EXPECT_EQ(job.Reason("Suspended"), "Resumed");
    EXPECT_EQ(job.Status()["attempt"], before.value("attempt", 0) + 1);
    EXPECT_EQ(job.Status().value("restarts", 0), 0);
  }
}

TEST_F(Restart, FinishedJobIgnoresSuspend) {
  TestNamespace space("late");
  JobUnderTest job(space.name(), MakeJob("job", {{"steps", 2}}));
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  std::this_thread::sleep_for(seconds(1));
  EXPECT_TRUE(job.Is("Succeeded"));
  EXPECT_FALSE(job.Is("Suspended"));
}

TEST_F(Restart, PodTemplateIsMutableOnlyWhileSuspended) {
  TestNamespace space("mutable");
  json manifest = Endless("job");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  manifest["metadata"]["namespace"] = space.name();
  RoleOf(manifest, "cpu")["template"]["spec"] = {
      {"nodeSelector", {{"kubernetes.io/os", "linux"}}},
      {"containers", json::array({{{"name", "runtime"}}})}};
  const CommandResult refused = plane_.Kubectl({"apply", "-f", "-"}, manifest.dump());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.output.find("immutable unless the job is suspended"), std::string::npos)
      << refused.output;
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(job.WaitIs("Suspended"));
  manifest["spec"]["runPolicy"]["suspend"] = true;
  plane_.MustKubectl({"apply", "-f", "-"}, manifest.dump());
}

}  // namespace
}  // namespace hetero::testing
