// Gangs in queues: admission, a full quota, preemption, every way out.
#include "tests/integration/operator/queue_fixture.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using ::testing::HasSubstr;

// Asked for before there was a Kueue at all.
TEST(QueuesWithoutKueue, AreWaitedFor) {
  World& world = World::Get();
  ControlPlane& plane = ControlPlane::Get();
  OperatorProcess process({.arguments = {"--kueue"}});
  TestNamespace space("early");
  json manifest = MakeJob("early", {{"steps", 5}});
  manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  JobUnderTest job(space.name(), manifest);
  JobUnderTest other(space.name(), MakeJob("unqueued", {{"steps", 5}}));
  WaitFor("Kueue is missed", [&] { return job.Reason("Queued") == "KueueMissing"; });
  EXPECT_THAT(job.Message("Queued"), HasSubstr("install Kueue 0.15 or newer"));
  EXPECT_TRUE(other.WaitIs("Succeeded")) << "jobs without a queue go on";
  world.InstallKueue();
  WaitFor("the job is queued", [&] { return job.Is("Queued"); });
  WaitFor("Kueue has looked at it", [&] {
    return job.Message("Queued").find("doesn't exist") != std::string::npos ||
           job.Message("Queued").find("does not exist") != std::string::npos;
  });
  EXPECT_EQ(job.Reason("Queued"), "Inadmissible");
  EXPECT_TRUE(plane.Objects(kube::kPods, space.name()).empty());
}

TEST_F(Queues, AnAdmittedJobRunsOnItsFlavorAndGivesTheQuotaBack) {
  TeamQueue queue("admit", 4);
  JobUnderTest job(queue.space(), Queued("vit"));
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_EQ(job.Reason("Queued"), "Admitted");
  EXPECT_TRUE(queue.WaitUsage("4"));
  for (const json& pod : plane_.Objects(kube::kPods, queue.space())) {
    EXPECT_EQ(pod["spec"]["nodeSelector"]["fake.hetero.dev/node"], "true");
    EXPECT_THAT(pod["spec"]["tolerations"].dump(), HasSubstr("spot"));
    EXPECT_FALSE(pod["metadata"].contains("finalizers")) << "Kueue has taken it for its own";
  }
  WaitFor("Kueue knows that it has started",
          [&] { return Condition(Workload(job), "PodsReady") == "True/Started"; });
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  WaitFor("the Workload is finished",
          [&] { return Condition(Workload(job), "Finished") == "True/Succeeded"; });
  EXPECT_TRUE(queue.WaitUsage("0"));
}

// Kueue would make each of them a job of its own, which asks for the same quota once more.
TEST_F(Queues, PodsAreLeftAloneWhereThereIsADefaultQueue) {
  TeamQueue queue("default", 4);
  const json local = {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                      {"kind", "LocalQueue"},
                      {"metadata", {{"name", "default"}, {"namespace", queue.space()}}},
                      {"spec", {{"clusterQueue", queue.space()}}}};
  plane_.MustKubectl({"apply", "-f", "-"}, local.dump());
  JobUnderTest job(queue.space(), Queued("vit"));
  ASSERT_TRUE(job.WaitIs("Running"));
  for (const json& pod : plane_.Objects(kube::kPods, queue.space())) {
    EXPECT_FALSE(pod["metadata"]["labels"].contains("kueue.x-k8s.io/queue-name")) << pod;
  }
  EXPECT_EQ(plane_.Objects(reconcile::kWorkloads, queue.space()).size(), 1u);
}

TEST_F(Queues, AJobForWhichThereIsNoRoomWaitsWithKueuesWords) {
  TeamQueue queue("full", 6);
  JobUnderTest first(queue.space(), Queued("first"));
  ASSERT_TRUE(first.WaitIs("Running"));
  RequestSampler sampler(queue.space());
  JobUnderTest second(queue.space(), Queued("second"));
  ASSERT_TRUE(second.WaitIs("Queued"));
  WaitFor("Kueue says what is missing", [&] {
    return second.Message("Queued").find("insufficient unused quota") != std::string::npos;
  });
  EXPECT_TRUE(second.Pod("head", 0).is_null());
  EXPECT_FALSE(second.Status().contains("startTime"));
  first.Continue();
  ASSERT_TRUE(first.WaitIs("Succeeded"));
  ASSERT_TRUE(second.WaitIs("Running"));
  second.Continue();
  EXPECT_TRUE(second.WaitIs("Succeeded"));
  EXPECT_LE(sampler.most(), 6);
}

// Kueue's own answer about the order, asked as the person who asks for the list.
TEST_F(Queues, TheCommandLineSaysWhereAJobStands) {
  TeamQueue queue("place", 4);
  JobUnderTest first(queue.space(), Queued("first"));
  ASSERT_TRUE(first.WaitIs("Running"));
  JobUnderTest second(queue.space(), Queued("second"));
  ASSERT_TRUE(second.WaitIs("Queued"));
  // Kueue orders by whole seconds, and those of one second by chance.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  JobUnderTest third(queue.space(), Queued("third"));
  ASSERT_TRUE(third.WaitIs("Queued"));
  const auto hetero = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), testing::BinDir() + "/kubectl-hetero");
    arguments.insert(arguments.end(), {"-n", queue.space()});
    return RunCommand(arguments).output;
  };
  WaitFor(
      "the places are told",
      [&] {
        return hetero({"list"}).find("queued 2nd of 2 in team: Pending: ") != std::string::npos;
      },
      std::chrono::seconds(60), [&] { return hetero({"list"}); });
  EXPECT_THAT(hetero({"list"}), ::testing::ContainsRegex("second .* queued 1st of 2 in team: "));
  EXPECT_THAT(hetero({"status", "third", "--once"}),
              HasSubstr("\nQueued, Pending, 2nd of 2 in team:\n"));
  EXPECT_THAT(hetero({"top", "third"}), HasSubstr("\nQueued, Pending, 2nd of 2 in team:\n"));
  // Who may see the job and not the queue gets no place, and no error.
  plane_.MustKubectl({"create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer",
                      "-n", queue.space()});
  std::string seen;
  WaitFor("the viewer sees the jobs", [&] {
    seen = hetero({"list", "--as", "viewer"});
    return seen.find("third") != std::string::npos;
  });
  EXPECT_THAT(seen, HasSubstr("Pending: "));
  EXPECT_THAT(seen, ::testing::Not(HasSubstr("of 2 in team")));
}

TEST_F(Queues, APreemptedGangStopsLeavesAndComesBack) {
  TeamQueue queue("preempt", 4);
  JobUnderTest low(queue.space(), Queued("low"));
  ASSERT_TRUE(low.WaitIs("Running"));
  RequestSampler sampler(queue.space());
  json urgent = Queued("urgent");
  urgent["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high";
  JobUnderTest high(queue.space(), urgent);
  ASSERT_TRUE(WaitQueued(low, "Evicted"));
  EXPECT_THAT(low.Message("Queued"), HasSubstr("Preempted to accommodate a workload"));
  ASSERT_TRUE(high.WaitIs("Running"));
  EXPECT_FALSE(low.Is("Running"));
  EXPECT_TRUE(low.Pod("gpu", 0).is_null());
  high.Continue();
  ASSERT_TRUE(high.WaitIs("Succeeded"));
  ASSERT_TRUE(low.WaitIs("Running"));
  EXPECT_EQ(low.Status()["attempt"], 2);
  EXPECT_EQ(low.Status().value("restarts", 0), 0);
  low.Continue();
  EXPECT_TRUE(low.WaitIs("Succeeded"));
  EXPECT_LE(sampler.most(), 4);
}

TEST_F(Queues, ADeactivatedJobStopsAndIsActivatedAgain) {
  TeamQueue queue("inactive", 4);
  JobUnderTest job(queue.space(), Queued("vit"));
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(queue.WaitUsage("4"));
  const kube::ObjectKey key{queue.space(), "vit-gang"};
  plane_.Patch(reconcile::kWorkloads, key, {{"spec", {{"active", false}}}});
  ASSERT_TRUE(WaitQueued(job, "Deactivated"));
  EXPECT_THAT(job.Message("Queued"), HasSubstr("spec.active of Workload vit-gang is false"));
  // Kueue forgets a Workload that is not active at once, and does not wait for the end of its pods.
  EXPECT_TRUE(queue.WaitUsage("0"));
  EXPECT_TRUE(WaitFor("no pod is left",
                      [&] { return plane_.Objects(kube::kPods, queue.space()).empty(); }));
  plane_.Patch(reconcile::kWorkloads, key, {{"spec", {{"active", true}}}});
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_EQ(job.Status()["attempt"], 2);
}

TEST_F(Queues, ASuspendedJobHoldsNoQuota) {
  TeamQueue queue("suspend", 4);
  JobUnderTest job(queue.space(), Queued("vit"));
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(queue.WaitUsage("4"));
  job.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(job.WaitIs("Suspended"));
  WaitFor("no Workload is left", [&] { return Workload(job).is_null(); });
  EXPECT_TRUE(queue.WaitUsage("0"));
  job.PatchSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_TRUE(queue.WaitUsage("4"));
}

TEST_F(Queues, AJobThatIsDeletedHoldsNothingInWhateverPhase) {
  TeamQueue queue("delete", 4);
  JobUnderTest running(queue.space(), Queued("running"));
  ASSERT_TRUE(running.WaitIs("Running"));
  JobUnderTest waiting(queue.space(), Queued("waiting"));
  ASSERT_TRUE(waiting.WaitIs("Queued"));
  waiting.Delete();
  WaitFor("its Workload is gone", [&] { return Workload(waiting).is_null(); });
  plane_.Patch(reconcile::kWorkloads, {queue.space(), "running-gang"},
               {{"spec", {{"active", false}}}});
  WaitFor("it is evicted", [&] { return Condition(Workload(running), "Evicted") != "absent"; });
  running.Delete();
  WaitFor("its Workload is gone", [&] { return Workload(running).is_null(); });
  EXPECT_TRUE(queue.WaitUsage("0"));
  JobUnderTest next(queue.space(), Queued("next"));
  ASSERT_TRUE(next.WaitIs("Running"));
  next.Delete();
  EXPECT_TRUE(queue.WaitUsage("0"));
  EXPECT_TRUE(next.WaitGone());
}

// Of a gang of three and three lent CPU workers.
TEST_F(Queues, ExtraCpuWorkersAreTakenBackAloneAndReturn) {
  TeamQueue queue("elastic", 6);
  JobUnderTest job(queue.space(), Elastic("lent", 4));
  ASSERT_TRUE(job.WaitIs("Running"));
  WaitFor("the queue lends three more", [&] { return CpuWorkers(job) == 4; });
  EXPECT_TRUE(queue.WaitUsage("6"));
  RequestSampler sampler(queue.space());
  JobUnderTest other(queue.space(), Queued("other", 1));  // of three pods, and of usual priority
  ASSERT_TRUE(other.WaitIs("Running"));
  EXPECT_TRUE(job.Is("Running"));
  EXPECT_EQ(CpuWorkers(job), 1);
  EXPECT_EQ(job.Status()["attempt"], 1);
  EXPECT_FALSE(job.Is("Queued"));
  other.Continue();
  ASSERT_TRUE(other.WaitIs("Succeeded"));
  WaitFor("they are lent again", [&] { return CpuWorkers(job) == 4; });
  EXPECT_EQ(job.Status().value("restarts", 0), 0);
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_TRUE(queue.WaitUsage("0"));
  EXPECT_LE(sampler.most(), 6);
}

TEST_F(Queues, AutoscalingAsksTheQueue) {
  TeamQueue queue("scaled", 5);
  json manifest = Elastic("scaled", 2);
  manifest["spec"]["autoscaling"] = "Enabled";
  RoleOf(manifest, "cpu")["maxReplicas"] = 4;
  JobUnderTest job(queue.space(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  WaitFor("one is lent", [&] { return CpuWorkers(job) == 2; });
  const auto need = [&](int workers) {
    plane_.Annotate(kJobs, job.key(), "fake.hetero.dev/script",
                    json{{"steps", 20}, {"holdAtStep", 10}, {"needed", {{"cpu", workers}}}}.dump());
  };
  need(4);
  WaitFor("as many as there is quota for", [&] { return CpuWorkers(job) == 3; });
  WaitFor("the fourth waits in the queue", [&] {
    return plane_.Object(reconcile::kWorkloads, {queue.space(), "scaled-cpu-3"}).is_object();
  });
  EXPECT_TRUE(job.Is("Running"));
  need(2);
  WaitFor("none more than are needed", [&] { return CpuWorkers(job) == 2; });
  WaitFor("no Workload of the others is left",
          [&] { return plane_.Objects(reconcile::kWorkloads, queue.space()).size() == 2; });
  EXPECT_TRUE(queue.WaitUsage("4"));
}

// As the controller that makes nodes (ProvisioningRequest) does it: played by the test.
TEST_F(Queues, AnAdmissionCheckHoldsTheJobAndAddsToItsPods) {
  const json check = {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                      {"kind", "AdmissionCheck"},
                      {"metadata", {{"name", "nodes"}}},
                      {"spec", {{"controllerName", "test.hetero.dev/nodes"}}}};
  plane_.MustKubectl({"apply", "-f", "-"}, check.dump());
  plane_.Patch({"kueue.x-k8s.io", "v1beta2", "admissionchecks", false}, {"", "nodes"},
               json::parse(R"({"status": {"conditions": [{"type": "Active", "status": "True",
                   "reason": "Active", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})"),
               "status");
  TeamQueue queue("check", 4,
                  {{"admissionChecksStrategy", {{"admissionChecks", {{{"name", "nodes"}}}}}}});
  JobUnderTest job(queue.space(), Queued("vit"));
  WaitFor("the check is asked for", [&] {
    return job.Message("Queued").find("waiting for admission check nodes (Pending)") !=
           std::string::npos;
  });
  EXPECT_TRUE(plane_.Objects(kube::kPods, queue.space()).empty());
  plane_.Patch(reconcile::kWorkloads, {queue.space(), "vit-gang"},
               json::parse(R"({"status": {"admissionChecks": [{"name": "nodes", "state": "Ready",
                   "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "podSetUpdates": [
                   {"name": "gpu", "annotations": {"cluster-autoscaler.kubernetes.io/consume-provisioning-request": "vit"},
                    "nodeSelector": {"kubernetes.io/os": "linux"}}]}]}})"),
               "status");
  ASSERT_TRUE(job.WaitIs("Running"));
  const json gpu = job.Pod("gpu", 0);
  EXPECT_EQ(gpu["metadata"]["annotations"]
               ["cluster-autoscaler.kubernetes.io/consume-provisioning-request"],
            "vit");
  EXPECT_EQ(gpu["spec"]["nodeSelector"]["kubernetes.io/os"], "linux");
  EXPECT_FALSE(job.Pod("cpu", 0)["spec"]["nodeSelector"].contains("kubernetes.io/os"));
}

TEST_F(Queues, KueueAndTheOperatorAreKilledAndNothingIsLost) {
  TeamQueue queue("killed", 4);
  JobUnderTest low(queue.space(), Queued("low"));
  ASSERT_TRUE(low.WaitIs("Running"));
  plane_.Component("kill", "kueue");
  RequestSampler sampler(queue.space());
  json urgent = Queued("urgent");
  urgent["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high";
  JobUnderTest high(queue.space(), urgent);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_TRUE(low.Is("Running")) << "it does not need Kueue to go on";
  plane_.Component("start", "kueue");
  ASSERT_TRUE(WaitQueued(low, "Evicted"));
  operator_->Kill();
  operator_->Start();
  ASSERT_TRUE(high.WaitIs("Running"));
  operator_->Kill();
  operator_->Start();
  high.Continue();
  ASSERT_TRUE(high.WaitIs("Succeeded"));
  ASSERT_TRUE(low.WaitIs("Running"));
  EXPECT_EQ(low.Status()["attempt"], 2);
  EXPECT_LE(sampler.most(), 4);
}

}  // namespace
}  // namespace hetero::testing
