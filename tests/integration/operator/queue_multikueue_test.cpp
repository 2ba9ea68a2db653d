// Jobs that MultiKueue hands to another cluster, on both sides of the way: what MultiKueue itself
// does is played by the test (pkg/controller/admissionchecks/multikueue of Kueue 0.15.2).
#include "tests/integration/operator/queue_fixture.h"

namespace hetero::testing {
namespace {

using ::testing::HasSubstr;

// As MultiKueue clones it into the worker cluster: name, labels, annotations and spec, without the
// uid of the job elsewhere, for which a newer Kueue takes it for an orphan.
json Clone(const json& workload, const std::string& name) {
  json labels = workload["metadata"]["labels"];
  labels.erase("kueue.x-k8s.io/job-uid");
  labels["kueue.x-k8s.io/multikueue-origin"] = "multikueue";
  json clone = {{"apiVersion", workload["apiVersion"]},
                {"kind", "Workload"},
                {"metadata",
                 {{"name", name},
                  {"namespace", workload["metadata"]["namespace"]},
                  {"labels", labels},
                  {"annotations", workload["metadata"]["annotations"]}}},
                {"spec", workload["spec"]}};
  return clone;
}

TEST_F(Queues, AJobOfMultiKueueHasAWorkloadAndNothingElse) {
  TeamQueue queue("manager", 4);
  json manifest = Queued("vit");
  manifest["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  JobUnderTest job(queue.space(), manifest);
  ASSERT_TRUE(queue.WaitUsage("4"));
  const json workload = Workload(job);
  EXPECT_EQ(workload["metadata"]["ownerReferences"][0]["uid"], job.uid());
  EXPECT_EQ(workload["metadata"]["ownerReferences"][0]["kind"], "HeteroTrainingJob");
  EXPECT_EQ(workload["metadata"]["ownerReferences"][0]["controller"], true);
  WaitFor("it is admitted",
          [&] { return Condition(Workload(job), "Admitted") == "True/Admitted"; });
  // Another job of the operator goes all the way meanwhile.
  TeamQueue other_queue("beside", 4);
  JobUnderTest other(other_queue.space(), Queued("vit"));
  ASSERT_TRUE(other.WaitIs("Running"));
  other.Continue();
  ASSERT_TRUE(other.WaitIs("Succeeded"));
  EXPECT_THAT(job.Children(), ::testing::IsEmpty()) << "of pods, services, secrets and the like";
  EXPECT_TRUE(job.Status().empty()) << job.Status();
  // Evicted: there is nothing to be stopped here.
  plane_.Patch(reconcile::kWorkloads, {queue.space(), "vit-gang"}, {{"spec", {{"active", false}}}});
  EXPECT_TRUE(queue.WaitUsage("0"));
  plane_.Patch(reconcile::kWorkloads, {queue.space(), "vit-gang"}, {{"spec", {{"active", true}}}});
  EXPECT_TRUE(queue.WaitUsage("4"));
  EXPECT_TRUE(job.Status().empty()) << job.Status();
  job.Delete();
  WaitFor("its Workload goes with it", [&] { return Workload(job).is_null(); });
  EXPECT_TRUE(queue.WaitUsage("0"));
}

TEST_F(Queues, ACopyOfMultiKueueTakesTheWorkloadThatWasMadeForIt) {
  TeamQueue queue("worker", 4);
  json manifest = Queued("vit");
  manifest["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  json made;
  {
    JobUnderTest elsewhere(queue.space(), manifest);
    ASSERT_TRUE(queue.WaitUsage("4"));
    made = Workload(elsewhere);
    elsewhere.Delete();
    WaitFor("its Workload is gone", [&] { return Workload(elsewhere).is_null(); });
  }
  manifest["spec"].erase("managedBy");
  manifest["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 0;
  manifest["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "vit-gang";
  manifest["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = "multikueue";
  JobUnderTest job(queue.space(), manifest);
  ASSERT_TRUE(WaitQueued(job, "Inadmissible"));
  WaitFor("what it waits for is named", [&] {
    return job.Message("Queued").find(
               "vit-gang, which metadata.labels["
               "kueue.x-k8s.io/prebuilt-workload-name] names, does not "
               "exist") != std::string::npos;
  });
  plane_.MustKubectl({"create", "-f", "-"}, Clone(made, "vit-gang").dump());
  ASSERT_TRUE(job.WaitIs("Running"));
  const json adopted = Workload(job);
  ASSERT_EQ(adopted["metadata"]["ownerReferences"].size(), 1u);
  EXPECT_EQ(adopted["metadata"]["ownerReferences"][0]["uid"], job.uid());
  EXPECT_EQ(adopted["spec"], made["spec"]) << "MultiKueue removes one that is no longer as it was";
  // A second job cannot have it, too.
  json second = manifest;
  second["metadata"]["name"] = "second";
  JobUnderTest thief(queue.space(), second);
  ASSERT_TRUE(WaitQueued(thief, "Inadmissible"));
  WaitFor("whose it is is named", [&] {
    return thief.Message("Queued").find("belongs to HeteroTrainingJob vit") != std::string::npos;
  });
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  WaitFor("the Workload is finished",
          [&] { return Condition(Workload(job), "Finished") == "True/Succeeded"; });
  EXPECT_FALSE(job.Get().is_null()) << "the status has not been copied yet";
}

}  // namespace
}  // namespace hetero::testing
