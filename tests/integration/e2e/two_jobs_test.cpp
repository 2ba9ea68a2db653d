// Jobs side by side, in one namespace and in two: each has its own stream and its own
// certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/ports.h"
#include "operator/children/children.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/intruder.h"
#include "tests/integration/e2e/support/nodes.h"

namespace hetero::testing {
namespace {

using ::testing::StartsWith;

json SmallSlowJob(const std::string& name, int seed) {
  json job = SlowJob(name);
  job["spec"]["training"]["seed"] = seed;
  RoleOf(job, "cpu")["replicas"] = 1;
  RoleOf(job, "gpu")["replicas"] = 1;
  return job;
}

std::string DigestOf(int seed) {
  return LocalReport(SmallSlowJob("any", seed)).value("streamDigest", "");
}

TEST(TwoJobs, DoNotMeet) {
  Installation::Get();
  JobNamespace one("one"), two("two");
  ASSERT_NE(DigestOf(1), DigestOf(2));
  JobUnderTest first(one.name(), SmallSlowJob("first", 1));
  JobUnderTest second(one.name(), SmallSlowJob("second", 2));
  // Of the same name as another job, elsewhere.
  JobUnderTest third(two.name(), SmallSlowJob("first", 3));
  for (const JobUnderTest* job : {&first, &second, &third}) ASSERT_TRUE(WaitStep(*job, 1));
  if (!SharedFolder().empty()) {
    const Intruder intruder(one, "intruder", first.uid());
    const Loot loot(one);
    const std::string head = AddressOf(first, "head", 0);
    ASSERT_TRUE(intruder.WaitAnswer("accepted", "tls", head, api::kHeadPort,
                                    loot.Take(first, "gpuworker")));
    for (const JobUnderTest* job : {&second, &third}) {
      EXPECT_THAT(intruder.Knock("tls", head, api::kHeadPort, loot.Take(*job, "gpuworker")),
                  StartsWith("refused"))
          << job->key().ToString();
    }
    // Certificates are one wall; the policy of the other job is another.
    EXPECT_THAT(intruder.Connect(AddressOf(second, "head", 0), {api::kHeadPort}),
                StartsWith("unreachable"));
  }
  ExpectSucceededWithDigest(first, DigestOf(1));
  ExpectSucceededWithDigest(second, DigestOf(2));
  ExpectSucceededWithDigest(third, DigestOf(3));
}

}  // namespace
}  // namespace hetero::testing
