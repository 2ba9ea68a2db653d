// The pages as a person opens them who may forward ports, and nothing more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/e2e/support/installation.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

TEST(Pages, AreLiveThroughPortForwardAndTheApiServersProxy) {
  Installation::Get();
  const JobNamespace space("pages");
  json manifest = SlowJob("watched");
  manifest["spec"]["training"]["epochs"] = 20;  // goes on until the pages were seen
  RoleOf(manifest, "cpu")["replicas"] = 1;
  RoleOf(manifest, "gpu")["replicas"] = 1;
  const JobUnderTest job(space.name(), manifest);
  // The API server is outside the job: a NetworkPolicy that is enforced closes the port to it.
  manifest["metadata"]["name"] = "open";
  manifest["spec"]["network"]["networkPolicy"] = "Disabled";
  const JobUnderTest open(space.name(), manifest);
  for (const JobUnderTest* each : {&job, &open}) ASSERT_TRUE(WaitStep(*each, 1));
  const CommandResult opened =
      RunCommand({"python3", testing::SourceDir() + "/tests/integration/page/forwarded_pages.py",
                  space.name(), job.name() + "-head-0", open.name() + "-head-0", kSystemNamespace,
                  "hetero-hetero-operator", testing::BinDir() + "/../page/forwarded"},
                 "", seconds(300));
  constexpr int kNoBrowser = 77;
  if (opened.exit_code == kNoBrowser) GTEST_SKIP() << opened.output;
  EXPECT_EQ(opened.exit_code, 0) << opened.output << Logs(job, "head", 0);
}

}  // namespace
}  // namespace hetero::testing
