#include "tests/integration/operator/queue_fixture.h"
#include "tests/support/paths.h"

// The queues and the job of examples/clusters/kueue, as they are, on nodes with the labels that its
// README gives them.
namespace hetero::testing {
namespace {

const std::string kExample = testing::SourceDir() + "/examples/clusters/kueue/";

class QueueExample : public Queues {
 protected:
  void SetUp() override {
    plane_.MustKubectl({"label", "node", "node-1", "example.com/pool=gpu"});
    plane_.MustKubectl({"label", "node", "node-2", "node-3", "example.com/pool=cpu"});
    plane_.MustKubectl({"apply", "-f", std::string(kExample) + "cluster.yaml"});
    WaitFor("the default ServiceAccount", [&] {
      return !plane_.Object({"", "v1", "serviceaccounts", true}, {"vision", "default"}).is_null();
    });
  }
  void TearDown() override {
    plane_.Kubectl({"delete", "--wait=false", "-f", std::string(kExample) + "cluster.yaml"});
    plane_.Kubectl({"label", "node", "--all", "example.com/pool-"});
  }

  // No volume is there to be bound; the head is played.
  json Job() {
    json job = json::parse(plane_.MustKubectl(
        {"create", "--dry-run=client", "-o", "json", "-f", std::string(kExample) + "job.yaml"}));
    job["metadata"]["annotations"]["fake.hetero.dev/script"] = R"({"steps": 20, "holdAtStep": 10})";
    json& pod = RoleOf(job, "gpu")["template"]["spec"];
    pod.erase("volumes");
    pod["containers"][0].erase("volumeMounts");
    return job;
  }
};

TEST_F(QueueExample, TrainsOnItsFlavorsWithCpuWorkersThatAreLent) {
  JobUnderTest job("vision", Job());
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(job.WaitPods(15)) << "the head, two trainers and twelve CPU workers";
  EXPECT_EQ(job.Pod("gpu", 1)["spec"]["nodeName"], "node-1");
  EXPECT_EQ(job.Pod("gpu", 1)["spec"]["nodeSelector"]["example.com/pool"], "gpu");
  for (int worker : {0, 11}) {
    EXPECT_EQ(job.Pod("cpu", worker)["spec"]["nodeSelector"]["example.com/pool"], "cpu") << worker;
  }
  EXPECT_EQ(job.Pod("head", 0)["spec"]["nodeSelector"]["example.com/pool"], "cpu");
  job.Continue();
  EXPECT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_TRUE(job.WaitGone());
  job.Delete();
}

}  // namespace
}  // namespace hetero::testing
