// A job without TLS: it trains as any other, and says that it is open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/ports.h"
#include "operator/children/children.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/intruder.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(PlainText, TrainsAndSaysThatItIsOpen) {
  Installation::Get();
  json manifest = SlowJob("open");
  const std::string digest = LocalReport(manifest).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  manifest["spec"]["network"]["tls"] = "Disabled";
  JobNamespace space("plain");
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("PodsCreated"));
  EXPECT_THAT(job.Message("PodsCreated"), HasSubstr("network.tls is Disabled"));
  EXPECT_THAT(job.Children(), Each(Not(StartsWith("secrets/")))) << "nobody needs a key";
  ASSERT_TRUE(WaitStep(job, 1));
  if (!SharedFolder().empty()) {
    // TLS is off and the policy is not: a pod that is not part of the job still gets no connection.
    const Intruder inside(space, "inside", job.uid()), outside(space, "outside");
    const std::string head = AddressOf(job, "head", 0);
    ASSERT_TRUE(inside.WaitAnswer("accepted", "plain", head, api::kHeadPort));
    EXPECT_THAT(outside.Connect(head, {api::kHeadPort, api::kStatusPort}),
                StartsWith("unreachable"));
  }
  ExpectSucceededWithDigest(job, digest);
  EXPECT_THAT(job.Message("PodsCreated"), HasSubstr("network.tls is Disabled"));
}

}  // namespace
}  // namespace hetero::testing
