#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tests/integration/operator/bad_manifests/definition.h"
#include "tests/support/paths.h"

// What examples/ holds, given to a real API server with the definitions that it names: Kueue's with
// Kueue itself and its webhooks, Karpenter's as its module has them (tests/cluster/definitions).
namespace hetero::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kExamples = testing::SourceDir() + "/examples";
const std::string kClusters = testing::SourceDir() + "/examples/clusters";
const std::string kPrices = testing::SourceDir() + "/examples/prices";
const std::string kFetched = testing::SourceDir() + "/.deps/cluster/share/definitions";

std::string Text(const fs::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in.good()) << file;
  return (std::ostringstream() << in.rdbuf()).str();
}

class Examples : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    InstallDefinition();
    const CommandResult kueue =
        RunCommand({testing::SourceDir() + "/tests/cluster/kueue"}, "", std::chrono::seconds(180));
    ASSERT_EQ(kueue.exit_code, 0) << kueue.output;
    const char* deps = std::getenv("HETERO_CLUSTER_DEPS");
    const std::string fetched =
        deps == nullptr ? kFetched : std::string(deps) + "/share/definitions";
    const CommandResult create = Kubectl({"create", "-f", fetched});
    ASSERT_EQ(create.exit_code, 0) << create.output;
    const CommandResult served =
        Kubectl({"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"});
    ASSERT_EQ(served.exit_code, 0) << served.output;
    // A kind is found by kubectl a moment after its definition is established.
    for (const char* kind : {"nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"}) {
      for (int i = 0; i < 600 && Kubectl({"get", kind}).exit_code != 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  }
};

void ExpectAccepted(const CommandResult& apply, const fs::path& file) {
  EXPECT_EQ(apply.exit_code, 0) << file << "\n" << apply.output;
  EXPECT_EQ(apply.output.find("Warning"), std::string::npos) << file << "\n" << apply.output;
}

TEST_F(Examples, OfClustersAreAccepted) {
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(kClusters)) {
    if (entry.is_directory()) folders.insert(entry.path());
  }
  EXPECT_GE(folders.size(), 6u);
  for (const fs::path& folder : folders) {
    // As the README's commands: what the administrator applies is there when the job comes.
    if (const fs::path cluster = folder / "cluster.yaml"; fs::exists(cluster)) {
      ExpectAccepted(Kubectl({"apply", "-f", cluster}), cluster);
    }
    const fs::path job = folder / "job.yaml";
    ExpectAccepted(Kubectl({"apply", "--dry-run=server", "-f", job}), job);
    EXPECT_TRUE(fs::exists(folder / "README.md")) << folder;
  }
}

TEST_F(Examples, OfJobsAreAccepted) {
  int examples = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kExamples)) {
    if (entry.path().extension() != ".yaml") continue;
    if (entry.path().string().rfind(kClusters, 0) == 0) continue;
    if (entry.path().string().rfind(kPrices, 0) == 0) continue;  // no objects: price_sheet_test
    ExpectAccepted(Kubectl({"apply", "--dry-run=server", "-f", entry.path()}), entry.path());
    ++examples;
  }
  EXPECT_GE(examples, 3);
}

// Whether the definitions above would find a mistake at all.
TEST_F(Examples, AMisspeltFieldIsRefused) {
  const fs::path queues = fs::path(kClusters) / "kueue/cluster.yaml";  // and the namespace
  ExpectAccepted(Kubectl({"apply", "-f", queues}), queues);
  struct Mistake {
    std::string file, right, wrong, says;
  };
  for (const Mistake& mistake : {
           Mistake{"eks/cluster.yaml", "consolidateAfter", "consolidateAfterwards",
                   "consolidateAfterwards"},
           Mistake{"eks/cluster.yaml", "subnetSelectorTerms", "subnetSelector", "subnetSelector"},
           Mistake{"eks/cluster.yaml", "WhenEmptyOrUnderutilized", "WhenIdle", "WhenIdle"},
           Mistake{"kueue/cluster.yaml", "nominalQuota", "quota", "quota"},
           Mistake{"kueue/job.yaml", "elasticPriorityClass", "elasticClass", "elasticClass"},
       }) {
    std::string text = Text(fs::path(kClusters) / mistake.file);
    const size_t at = text.find(mistake.right);
    ASSERT_NE(at, std::string::npos) << mistake.right;
    text.replace(at, mistake.right.size(), mistake.wrong);
    const CommandResult apply = Kubectl({"apply", "--dry-run=server", "-f", "-"}, text);
    EXPECT_NE(apply.exit_code, 0) << mistake.wrong << " in " << mistake.file;
    EXPECT_THAT(apply.output, HasSubstr(mistake.says));
  }
}

}  // namespace
}  // namespace hetero::testing
