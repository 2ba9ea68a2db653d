// Certificates that have expired, at every TLS port. The operator throws a job's authority away
// once the job's own certificates are signed, so this job gets an authority of the test's, in the
// very objects that the operator would have made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "api/manifest.h"
#include "api/peer_uri.h"
#include "api/ports.h"
#include "operator/children/children.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/intruder.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::testing {
namespace {

using base::TestAuthority;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kRoleTypes[] = {"Head", "CPUWorker", "GPUWorker"};

api::HeteroTrainingJob Parsed(const json& object) {
  api::HeteroTrainingJob job = api::ParseManifest(json{{"apiVersion", object["apiVersion"]},
                                                       {"kind", object["kind"]},
                                                       {"metadata", {{"name", "any"}}},
                                                       {"spec", object["spec"]}}
                                                      .dump())
                                   .job;
  job.metadata.name = object["metadata"]["name"];
  job.metadata.name_space = object["metadata"]["namespace"];
  job.metadata.uid = object["metadata"]["uid"];
  return job;
}

children::Leaf LeafOf(const TestAuthority& authority, const std::string& uri) {
  const TestAuthority::Leaf leaf = authority.IssueForUri(uri);
  return {leaf.certificate_pem, leaf.key_pem};
}

// As the operator would, while it is away.
void CreateTrust(const api::HeteroTrainingJob& job, const TestAuthority& authority) {
  const auto leaf = [&](const char* type) {
    return LeafOf(authority, api::RoleUri(job.metadata.uid, type));
  };
  const json secret = children::TlsSecret(job, leaf("Head"), leaf("CPUWorker"), leaf("GPUWorker"));
  const json config =
      children::ConfigMap(job, {}, authority.certificate_pem(), Loot::OperatorsAuthority());
  for (const json& object : {secret, config}) {
    ControlPlane::Get().MustKubectl({"create", "-n", job.metadata.name_space, "-f", "-"},
                                    object.dump());
  }
}

TEST(Expired, CertificatesOpenNoPort) {
  Installation::Get();
  if (SharedFolder().empty()) {
    GTEST_SKIP() << "nothing to carry a program and certificates into pods";
  }
  JobNamespace space("expired");
  json manifest = SlowJob("victim");
  manifest["spec"]["training"]["epochs"] = 1000;
  const TestAuthority authority;
  Installation::Get().ScaleOperator(0);
  JobUnderTest job(space.name(), manifest);
  CreateTrust(Parsed(job.Get()), authority);
  Installation::Get().ScaleOperator(1);
  const Intruder intruder(space, "intruder", job.uid());
  const Loot loot(space);
  ASSERT_TRUE(WaitStep(job, 1)) << "the job takes the certificates that it was given";

  std::map<std::string, std::string> good, expired;
  for (const std::string type : kRoleTypes) {
    const std::string uri = api::RoleUri(job.uid(), type);
    const TestAuthority::Leaf fresh = authority.IssueForUri(uri);
    const TestAuthority::Leaf old = authority.IssueExpiredForUri(uri);
    good[type] = loot.Keep("good-" + type, fresh.certificate_pem, fresh.key_pem);
    expired[type] = loot.Keep("expired-" + type, old.certificate_pem, old.key_pem);
  }
  good["operator"] = loot.TakeOperators();
  expired["operator"] = loot.MakeExpiredOperators();
  struct Port {
    const char* role;
    int number;
    const char* welcome;
  };
  for (const Port& port :
       {Port{"head", api::kHeadPort, "GPUWorker"}, Port{"head", api::kStatusPort, "operator"},
        Port{"cpu", api::kFeedPort, "GPUWorker"}}) {
    const std::string address = AddressOf(job, port.role, 0);
    // Of the same authority and name: only the date keeps the other one out.
    ASSERT_TRUE(
        intruder.WaitAnswer("accepted", "tls", address, port.number, good.at(port.welcome)));
    for (const auto& [who, certificate] : expired) {
      EXPECT_THAT(intruder.Knock("tls", address, port.number, certificate), StartsWith("refused"))
          << port.role << ":" << port.number << " with the expired one of " << who;
    }
    EXPECT_THAT(Logs(job, port.role, 0), HasSubstr("its certificate has expired"));
  }
  EXPECT_FALSE(job.Is("Failed"));
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Describe();
}

}  // namespace
}  // namespace hetero::testing
