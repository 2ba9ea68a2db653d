// The chart on real nodes: its own test, and an upgrade under a job that runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/integration/e2e/support/installation.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

TEST(Chart, HelmTestPasses) {
  Installation::Get();
  const CommandResult test =
      RunCommand({"helm", "test", "hetero", "--namespace", kSystemNamespace, "--timeout", "240s"},
                 "", seconds(260));
  EXPECT_EQ(test.exit_code, 0)
      << test.output
      << ControlPlane::Get().Kubectl({"describe", "htj,pods", "-n", kSystemNamespace}).output;
  EXPECT_NE(test.output.find("Succeeded"), std::string::npos) << test.output;
}

TEST(Upgrade, AJobThatRunsGoesOn) {
  Installation::Get();
  const std::string digest = LocalReport(SlowJob("upgraded")).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  JobNamespace space("upgrade");
  JobUnderTest job(space.name(), SlowJob("upgraded"));
  ASSERT_TRUE(WaitStep(job, 5));
  const std::string trainer = job.PodUid("gpu", 0);
  // The next version of the chart: the number and something that recreates the operator's pod.
  TemporaryFolder folder;
  std::filesystem::copy(testing::SourceDir() + "/charts/hetero-operator", folder / "chart",
                        std::filesystem::copy_options::recursive);
  const std::string about = ReadFileOrDie(folder / "chart/Chart.yaml");
  WriteFile(folder / "chart/Chart.yaml",
            std::regex_replace(about, std::regex("\nversion: .*"), "\nversion: 99.0.0"));
  const CommandResult upgrade = RunCommand(
      {"helm", "upgrade", "hetero", folder / "chart", "--namespace", kSystemNamespace,
       "--reuse-values", "--set", "podAnnotations.chart=next", "--wait", "--timeout", "180s"},
      "", seconds(200));
  EXPECT_EQ(upgrade.exit_code, 0) << upgrade.output;
  EXPECT_EQ(job.PodUid("gpu", 0), trainer) << "it is the same pod, or the job was over too soon";
  ExpectSucceededWithDigest(job, digest);
  const json status = job.Status();
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  EXPECT_EQ(status.value("attempt", 0), 1) << status.dump(1);
}

}  // namespace
}  // namespace hetero::testing
