#include "tests/integration/operator/bad_manifests/bad_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/integration/operator/support/command.h"

// The real API server refuses what it must and accepts the examples, as a user of kubectl sees it.
namespace hetero::testing {
namespace {

using ::testing::HasSubstr;

CommandResult Kubectl(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), "kubectl");
  return RunCommand(arguments, input);
}

void InstallDefinition() {
  static const bool installed = [] {
    const CommandResult apply = Kubectl({"apply", "-f", HETERO_SOURCE_DIR "/crds"});
    EXPECT_EQ(apply.exit_code, 0) << apply.output;
    // At first the definition has no conditions to wait on, which kubectl takes for an error.
    for (int i = 0; i < 100; ++i) {
      if (Kubectl({"get", "heterotrainingjobs"}).exit_code == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }();
  ASSERT_TRUE(installed);
}

TEST(BadManifests, AreRefusedWithTheFieldsPath) {
  InstallDefinition();
  const std::vector<BadManifest> cases = BadManifests();
  EXPECT_GE(cases.size(), 60);
  for (const BadManifest& bad : cases) {
    SCOPED_TRACE(bad.name);
    const CommandResult apply =
        Kubectl({"apply", "--dry-run=server", "-f", "-"}, bad.manifest.dump());
    EXPECT_NE(apply.exit_code, 0);
    EXPECT_THAT(apply.output, HasSubstr(bad.server_path));
    EXPECT_THAT(apply.output, HasSubstr(bad.server_says));
    const bool unknown_field = apply.output.find("strict decoding error") != std::string::npos;
    EXPECT_EQ(unknown_field, bad.refused_by == "Strict");
  }
}

TEST(BadManifests, ChangesAreRefusedUnlessSuspended) {
  InstallDefinition();
  nlohmann::json base = BaseManifest();
  for (const bool suspended : {false, true}) {
    base["spec"]["runPolicy"]["suspend"] = suspended;
    CommandResult apply = Kubectl({"apply", "-f", "-"}, base.dump());
    ASSERT_EQ(apply.exit_code, 0) << apply.output;
    for (const Change& change : Changes()) {
      if (change.suspended != suspended) continue;
      SCOPED_TRACE(change.name);
      apply = Kubectl({"apply", "--dry-run=server", "-f", "-"}, change.manifest.dump());
      EXPECT_EQ(apply.exit_code == 0, change.path.empty()) << apply.output;
      EXPECT_THAT(apply.output, HasSubstr(change.path));
      EXPECT_THAT(apply.output, HasSubstr(change.server_says));
    }
  }
  Kubectl({"delete", "heterotrainingjob", "base"});
}

TEST(BadManifests, EveryExampleIsAccepted) {
  InstallDefinition();
  int examples = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(HETERO_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    const CommandResult apply = Kubectl({"apply", "--dry-run=server", "-f", entry.path().string()});
    EXPECT_EQ(apply.exit_code, 0) << apply.output;
    EXPECT_EQ(apply.output.find("Warning"), std::string::npos) << apply.output;
    ++examples;
  }
  EXPECT_GE(examples, 3);
}

// A pod template's schema is the API server's own; another version of it may differ.
TEST(BadManifests, PodTemplateIsTheApiServersOwn) {
  const CommandResult pods = Kubectl({"get", "--raw", "/openapi/v3/api/v1"});
  ASSERT_EQ(pods.exit_code, 0) << pods.output;
  const CommandResult check = RunCommand(
      {"python3", HETERO_SOURCE_DIR "/scripts/pod_template_schema.py", "--check"}, pods.output);
  EXPECT_EQ(check.exit_code, 0) << check.output;
}

// A template's size is the same for everybody who reads the job: defaults must not grow it.
TEST(BadManifests, TemplatesAreStoredAsWritten) {
  InstallDefinition();
  const CommandResult stored =
      Kubectl({"apply", "--dry-run=server", "-o", "json", "-f", "-"}, BaseManifest().dump());
  ASSERT_EQ(stored.exit_code, 0) << stored.output;
  const nlohmann::json job = nlohmann::json::parse(stored.output, nullptr, false);
  ASSERT_TRUE(job.is_object()) << stored.output;
  EXPECT_EQ(job["spec"]["roles"][1]["template"], BaseManifest()["spec"]["roles"][1]["template"]);
}

}  // namespace
}  // namespace hetero::testing
