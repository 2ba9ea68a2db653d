#include "tests/integration/operator/bad_manifests/bad_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/integration/operator/bad_manifests/definition.h"
#include "tests/support/paths.h"

// The real API server refuses what it must, as a user of kubectl sees it.
namespace hetero::testing {
namespace {

using ::testing::HasSubstr;

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

// A pod template's schema is the API server's own; another version of it may differ.
TEST(BadManifests, PodTemplateIsTheApiServersOwn) {
  const CommandResult pods = Kubectl({"get", "--raw", "/openapi/v3/api/v1"});
  ASSERT_EQ(pods.exit_code, 0) << pods.output;
  const CommandResult check =
      RunCommand({"python3", testing::SourceDir() + "/scripts/pod_template_schema.py", "--check"},
                 pods.output);
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
