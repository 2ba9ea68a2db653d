#include <gtest/gtest.h>

#include "tests/integration/operator/restart_fixture.h"

namespace hetero::testing {
namespace {

// What ends pods without anybody's fault, and what makes more or fewer of them.

TEST_F(Restart, ResetAndShutNodesCostNothing) {
  TestNamespace space("reboot");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  auto before = Uids(job);
  job.EndPod("gpu", 1, 255, "", "Unknown");
  ExpectReplaced(job, before, {"gpu-1"});
  before = Uids(job);
  job.EndPod("cpu", 0, 137, "The container could not be located", "ContainerStatusUnknown");
  ExpectReplaced(job, before, {"cpu-0"});
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
  EXPECT_EQ(job.Status()["attempt"], 1);
}

// A trainer that leaves costs its pod alone; a head that was told to stop begins a new attempt.
TEST_F(Restart, EndsInOrderAreFree) {
  TestNamespace space("stop");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  auto before = Uids(job);
  plane_.MustKubectl({"delete", "pod", "job-gpu-0", "-n", space.name(), "--wait=false"});
  ExpectReplaced(job, before, {"gpu-0"});
  EXPECT_EQ(job.Status()["attempt"], 1);
  before = Uids(job);
  job.EndPod("gpu", 1, 130);
  ExpectReplaced(job, before, {"gpu-1"});
  EXPECT_EQ(job.Status()["attempt"], 1);
  ASSERT_TRUE(job.WaitIs("Running"));
  before = Uids(job);
  job.EndPod("head", 0, 130);
  ExpectReplaced(job, before, {"head-0", "cpu-0", "cpu-1", "gpu-0", "gpu-1"});
  WaitFor(
      "it runs again", [&] { return job.Is("Running") && job.Status()["attempt"] == 2; },
      seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
  EXPECT_FALSE(job.Status().contains("firstFailure")) << job.Status().dump(1);
}

TEST_F(Restart, CpuWorkerThatAnEarlierHeadLetGoComesBack) {
  TestNamespace space("left");
  json manifest = Endless("job");
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const auto before = Uids(job);
  job.EndPod("cpu", 1, 0);
  WaitFor("it ended", [&] { return job.Pod("cpu", 1)["status"]["phase"] == "Succeeded"; });
  job.EvictPod("head", 0);
  ExpectReplaced(job, before, {"head-0", "cpu-1"});
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
  EXPECT_TRUE(job.WaitIs("Running"));
}

TEST_F(Restart, AutoscalingFollowsTheHead) {
  TestNamespace space("autoscale");
  json script = {{"steps", 1000}, {"stepMillis", 20}, {"holdAtStep", 10}};
  json manifest = MakeJob("job", script, 2, 1);
  manifest["spec"]["autoscaling"] = "Enabled";
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  RoleOf(manifest, "cpu")["minReplicas"] = 1;
  RoleOf(manifest, "cpu")["maxReplicas"] = 4;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const std::string stays = job.PodUid("cpu", 0);
  const auto need = [&](int replicas) {
    script["needed"] = {{"cpu", replicas}};
    plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script", script.dump());
  };
  const auto settles = [&](int replicas) {
    const std::string all = std::to_string(replicas + 1);
    return WaitFor(
        std::to_string(replicas) + " CPU workers",
        [&] {
          const json status = job.Status();
          for (const json& role : status.value("roleStatuses", json::array())) {
            if (role["name"] == "cpu" && role.value("desired", 0) != replicas) return false;
          }
          return status.value("registered", "") == all + "/" + all;
        },
        seconds(60), [&] { return job.Describe(); });
  };
  need(9);  // more than maxReplicas
  ASSERT_TRUE(settles(4));
  EXPECT_TRUE(job.WaitPods(6));
  need(1);
  ASSERT_TRUE(settles(1));
  EXPECT_TRUE(job.WaitPods(3));
  EXPECT_EQ(job.PodUid("cpu", 0), stays) << "the highest indices went";
  need(2);
  ASSERT_TRUE(settles(2));
  const json status = job.Status();
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  EXPECT_EQ(status["attempt"], 1);
  EXPECT_FALSE(status.contains("firstFailure")) << status.dump(1);
  WaitFor(
      "an event tells it",
      [&] {
        const std::string events = plane_.Kubectl({"events", "-n", space.name()}).output;
        return events.find("Role cpu: from 2 to 4 replicas") != std::string::npos &&
               events.find("Role cpu: from 4 to 1 replica") != std::string::npos;
      },
      seconds(60), [&] { return job.Describe(); });
  job.Continue();
  EXPECT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_TRUE(job.WaitGone());
}

TEST_F(Restart, FailingCheckpointsAreAConditionAndAnEvent) {
  TestNamespace space("checkpoint");
  json script = {{"steps", 1000000}, {"stepMillis", 20}};
  JobUnderTest job(space.name(), MakeJob("job", script));
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_FALSE(job.Is("CheckpointFailing"));
  script["checkpointProblem"] = "gpu-0: No space left on device";
  plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script", script.dump());
  ASSERT_TRUE(job.WaitIs("CheckpointFailing"));
  EXPECT_EQ(job.Message("CheckpointFailing"), "gpu-0: No space left on device");
  WaitFor(
      "an event tells it",
      [&] {
        return plane_.Kubectl({"events", "-n", space.name()}).output.find("CheckpointFailed") !=
               std::string::npos;
      },
      seconds(60), [&] { return job.Describe(); });
  EXPECT_EQ(plane_
                .MustKubectl({"get", "htj", "job", "-n", space.name(), "-o",
                              "jsonpath={.status.conditions[?(@.status==\"True\")].type}"})
                .substr(0, 7),
            "Running")
      << "the state is still what tells most";
  script.erase("checkpointProblem");
  plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script", script.dump());
  WaitFor(
      "it is over", [&] { return job.Reason("CheckpointFailing") == "Recovered"; }, seconds(60),
      [&] { return job.Describe(); });
}

}  // namespace
}  // namespace hetero::testing
