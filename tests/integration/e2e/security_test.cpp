// Who may talk to a job: certificates on the gRPC ports, the NetworkPolicy in front of all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/ports.h"
#include "operator/children/children.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/intruder.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

using api::kFeedPort;
using api::kHeadPort;
using api::kMetricsPort;
using api::kPagePort;
using api::kStatusPort;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A job that trains until it is deleted.
json Endless(const std::string& name, int seed = 0) {
  json job = SlowJob(name);
  job["spec"]["training"]["epochs"] = 1000;
  job["spec"]["training"]["seed"] = seed;
  return job;
}

class Security : public ::testing::Test {
 protected:
  void SetUp() override {
    Installation::Get();
    if (SharedFolder().empty())
      GTEST_SKIP() << "nothing to carry a program and certificates into pods";
  }
};

TEST_F(Security, NobodyElsesCertificateOpensAPort) {
  JobNamespace space("matrix");
  JobUnderTest job(space.name(), Endless("victim"));
  JobUnderTest other(space.name(), Endless("other", 1));
  const Intruder intruder(space, "intruder", job.uid());
  const Loot loot(space);
  ASSERT_TRUE(WaitStep(job, 1));
  ASSERT_TRUE(other.WaitIs("PodsCreated"));
  const std::string head = loot.Take(job, "head"), cpu = loot.Take(job, "cpuworker"),
                    gpu = loot.Take(job, "gpuworker"), others_cpu = loot.Take(other, "cpuworker"),
                    others_gpu = loot.Take(other, "gpuworker"),
                    others_head = loot.Take(other, "head"), operators = loot.TakeOperators(),
                    expired = loot.MakeExpiredOperators();
  const std::vector<std::string> all = {"",         head,        cpu,       gpu,    others_cpu,
                                        others_gpu, others_head, operators, expired};
  struct Port {
    const char* role;
    int number;
    std::vector<std::string> welcome;
  };
  const std::vector<Port> ports = {{"head", kHeadPort, {cpu, gpu}},
                                   {"head", kStatusPort, {operators}},
                                   {"cpu", kFeedPort, {gpu}}};
  for (const Port& port : ports) {
    const std::string address = AddressOf(job, port.role, 0);
    // First who may: it also waits until the network lets the intruder through.
    for (const std::string& certificate : port.welcome) {
      ASSERT_TRUE(intruder.WaitAnswer("accepted", "tls", address, port.number, certificate));
    }
    for (const std::string& certificate : all) {
      if (std::count(port.welcome.begin(), port.welcome.end(), certificate) != 0) continue;
      EXPECT_THAT(intruder.Knock("tls", address, port.number, certificate), StartsWith("refused"))
          << port.role << ":" << port.number << " with \"" << certificate << "\"";
    }
    EXPECT_THAT(intruder.Knock("plain", address, port.number), StartsWith("refused"));
    EXPECT_THAT(Logs(job, port.role, 0), HasSubstr("refused"))
        << port.role << " says whom it refuses";
  }
  EXPECT_FALSE(job.Is("Failed"));
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Describe();
}

TEST_F(Security, ThePolicyKeepsEverybodyElseOut) {
  if (!Nodes::reachable()) GTEST_SKIP() << "cannot look for ports of trainers";
  JobNamespace space("policy"), elsewhere("elsewhere");
  JobUnderTest job(space.name(), Endless("victim"));
  const Intruder inside(space, "inside", job.uid());
  const Intruder outside(space, "outside"), foreign(elsewhere, "foreign");
  ASSERT_TRUE(WaitStep(job, 1));
  std::vector<int> of_trainer = Nodes::ListeningPorts(space.name(), job.PodKey("gpu", 0).name);
  EXPECT_THAT(of_trainer, Contains(kMetricsPort));
  EXPECT_GE(of_trainer.size(), 2u)
      << "Gloo's are there too: " << ::testing::PrintToString(of_trainer);
  const std::vector<std::pair<std::string, std::vector<int>>> ports = {
      {"head", {kHeadPort, kStatusPort, kPagePort, kMetricsPort}},
      {"cpu", {kFeedPort, kMetricsPort}},
      {"gpu", of_trainer}};
  for (const auto& [role, numbers] : ports) {
    const std::string address = AddressOf(job, role, 0);
    ASSERT_TRUE(inside.WaitConnected(address, numbers)) << role;
    for (const Intruder* who : {&outside, &foreign}) {
      EXPECT_THAT(who->Connect(address, numbers), StartsWith("unreachable"))
          << role << " from " << who->name();
    }
  }
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Describe();
}

TEST_F(Security, NoiseDoesNotDisturbTheJob) {
  const std::string digest = LocalReport(SlowJob("noisy")).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  JobNamespace space("noise");
  JobUnderTest job(space.name(), SlowJob("noisy"));
  const Intruder intruder(space, "intruder", job.uid());
  ASSERT_TRUE(WaitStep(job, 5));
  const std::string head = AddressOf(job, "head", 0), cpu = AddressOf(job, "cpu", 0);
  std::vector<std::unique_ptr<BackgroundProgram>> held;
  for (const auto& [address, port] :
       {std::pair{head, kHeadPort}, std::pair{head, kStatusPort}, std::pair{cpu, kFeedPort}}) {
    ASSERT_TRUE(intruder.WaitConnected(address, {port}));
    held.push_back(intruder.Hold(address, port, 1000));
    EXPECT_EQ(intruder.Knock("garbage", address, port, "50"), "50");
    EXPECT_THAT(intruder.Knock("plain", address, port), StartsWith("refused"));
  }
  EXPECT_FALSE(job.Is("Succeeded")) << "it was over before the noise was";
  ExpectSucceededWithDigest(job, digest);
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Status().dump(1);
}

}  // namespace
}  // namespace hetero::testing
