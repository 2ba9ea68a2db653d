#include "operator/program/job_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/children/names.h"

namespace hetero::program {
namespace {

using ::testing::ElementsAre;

plan::ObservedPod PodOn(const std::string& node, const std::string& role, int index) {
  plan::ObservedPod pod;
  pod.node = node;
  pod.role = role;
  pod.index = index;
  return pod;
}

// The other way round of children/names.h, for names with every trap in them.
TEST(JobKeysTest, ComeBackFromTheNamesOfTheObjects) {
  for (const std::string name : {"a", "a-head", "job-gpu-0", "x-config"}) {
    api::Metadata job;
    job.name = name;
    const std::string wanted = "ns/" + name;
    EXPECT_EQ(JobOfPod({"ns", children::PodName(job, "gpu", 10)}, PodOn("", "gpu", 10)), wanted);
    EXPECT_EQ(JobOfPod({"ns", children::PodName(job, "cpu-big", 0)}, PodOn("", "cpu-big", 0)),
              wanted);
    EXPECT_EQ(JobOfService({"ns", children::ServiceName(job)}), wanted);
    EXPECT_EQ(JobOfConfigMap({"ns", children::ConfigMapName(job)}), wanted);
    EXPECT_EQ(JobOfNetworkPolicy({"ns", children::NetworkPolicyName(job)}), wanted);
  }
}

TEST(JobKeysTest, ObjectsWithOtherNamesBelongToNobody) {
  EXPECT_EQ(JobOfPod({"ns", "a-gpu-1"}, PodOn("", "gpu", 0)), "");
  EXPECT_EQ(JobOfPod({"ns", "a-gpu-0"}, PodOn("", "", 0)), "");
  EXPECT_EQ(JobOfPod({"ns", "-gpu-0"}, PodOn("", "gpu", 0)), "");
  EXPECT_EQ(JobOfService({"ns", "a"}), "");
  EXPECT_EQ(JobOfService({"ns", "-head"}), "");
  EXPECT_EQ(JobOfConfigMap({"ns", "a-head"}), "");
}

TEST(JobKeysTest, APodGroupIsNamedByJobAndAttempt) {
  EXPECT_EQ(JobOfPodGroup({"ns", "a-gang-1"}), "ns/a");
  EXPECT_EQ(JobOfPodGroup({"ns", "a-gang-2-gang-10"}), "ns/a-gang-2");
  for (const char* other : {"a", "a-gang", "-gang-1", "gang-1", "7", ""}) {
    EXPECT_EQ(JobOfPodGroup({"ns", other}), "") << other;
  }
}

TEST(JobKeysTest, JobsOfANodeComeOnceEach) {
  kube::Store<plan::ObservedPod> pods;
  const auto put = [&](const std::string& name, const plan::ObservedPod& pod) {
    pods.Put({"ns", name}, std::make_shared<const plan::ObservedPod>(pod));
  };
  put("a-gpu-0", PodOn("n1", "gpu", 0));
  put("a-gpu-1", PodOn("n1", "gpu", 1));
  put("b-gpu-0", PodOn("n2", "gpu", 0));
  put("c-cpu-0", PodOn("n1", "cpu", 0));
  put("d-cpu-0", PodOn("", "cpu", 0));
  put("stray", PodOn("n1", "cpu", 0));
  EXPECT_THAT(JobsOnNode(pods, "n1"), ElementsAre("ns/a", "ns/c"));
  EXPECT_THAT(JobsOnNode(pods, "n2"), ElementsAre("ns/b"));
  EXPECT_TRUE(JobsOnNode(pods, "n3").empty());
}

}  // namespace
}  // namespace hetero::program
