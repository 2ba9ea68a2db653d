// Namespaces that deny everything by default, enforced: the policies of
// examples/clusters/locked-down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The NetworkPolicies of the example's namespace for jobs, in `name_space`.
std::string PoliciesFor(const std::string& name_space) {
  std::string policies;
  std::istringstream file(
      ReadFileOrDie(testing::SourceDir() + "/examples/clusters/locked-down/cluster.yaml"));
  std::string object;
  const auto end = [&] {
    const bool wanted = object.find("kind: NetworkPolicy") != std::string::npos;
    const size_t at = object.find("namespace: vision}");
    if (wanted && at != std::string::npos) {
      object.replace(at, sizeof "namespace: vision}" - 1, "namespace: " + name_space + "}");
      policies += object + "---\n";
    }
    object.clear();
  };
  for (std::string line; std::getline(file, line);) {
    if (line == "---") {
      end();
    } else {
      object += line + "\n";
    }
  }
  end();
  return policies;
}

TEST(LockedDown, TrainsAndShowsItsFiguresBehindADefaultDeny) {
  Installation::Get();
  JobNamespace space("locked");
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/policies.yaml";
  std::ofstream(file) << PoliciesFor(space.name());
  const std::string applied = ControlPlane::Get().MustKubectl({"apply", "-f", file});
  EXPECT_THAT(applied,
              AllOf(HasSubstr("default-deny created"), HasSubstr("training-jobs created")));
  const json spec = SlowJob("locked");
  const std::string digest = LocalReport(spec).value("streamDigest", "");
  JobUnderTest job(space.name(), spec);
  ASSERT_TRUE(WaitStep(job, 5));
  const CommandResult top =
      RunCommand({testing::BinDir() + "/kubectl-hetero", "top", "locked", "-n", space.name()}, "",
                 seconds(60));
  EXPECT_EQ(top.exit_code, 0);
  EXPECT_THAT(top.output, AllOf(ContainsRegex("\ncpu-0 [^\n]* [0-9.]+%"),
                                ContainsRegex("\ngpu-0 [^\n]* [0-9.]+% +[0-9.]+% +0"),
                                Not(HasSubstr("No figures"))));
  // The job's own policy lets nobody to the page of the head, the API server neither.
  const CommandResult page = ControlPlane::Get().Kubectl(
      {"get", "--request-timeout=5s", "--raw",
       "/api/v1/namespaces/" + space.name() + "/pods/locked-head-0:7072/proxy/report.json"});
  EXPECT_NE(page.exit_code, 0) << page.output;
  ASSERT_TRUE(job.WaitIs("Succeeded", seconds(300))) << job.Describe();
  ExpectSucceededWithDigest(job, digest);
}

}  // namespace
}  // namespace hetero::testing
