// A resource definition that is upgraded under jobs that somebody else manages by the old field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "tests/integration/operator/support/world.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kDefinition[] = "crds/heterotrainingjobs.training.hetero.dev.yaml";

// The last row of the table in docs/releases.md.
std::string CommitOfTheLastRelease() {
  std::ifstream file(testing::SourceDir() + "/docs/releases.md");
  const std::regex row(R"(\| [0-9.]+ \| ([0-9a-f]{7}) \| .*)");
  std::string commit;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, row)) commit = match[1];
  }
  return commit;
}

std::string ReleasedDefinition() {
  const std::string commit = CommitOfTheLastRelease();
  const CommandResult shown =
      RunCommand({"git", "-C", testing::SourceDir(), "show", commit + ":" + kDefinition});
  EXPECT_EQ(shown.exit_code, 0) << "the commit " << commit << " of the last release is not here; "
                                << "git fetch --unshallow: " << shown.output;
  return shown.output;
}

std::string OwnDefinition() {
  std::ifstream file(testing::SourceDir() + "/" + kDefinition);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ManagedBy : public ::testing::Test {
 protected:
  void Apply(const std::string& definition) {
    plane_.MustKubectl({"apply", "--server-side", "--force-conflicts", "-f", "-"}, definition);
  }
  // Refused by field validation where the definition has no such field.
  CommandResult TryNewField(const std::string& name_space) {
    json job = MakeJob("probe");
    job["metadata"]["namespace"] = name_space;
    job["spec"]["managedBy"] = "example.com/other";
    return plane_.Kubectl({"create", "--dry-run=server", "--validate=strict", "-f", "-"},
                          job.dump());
  }
  void WaitForNewField(const std::string& name_space, bool known) {
    WaitFor("the definition is served",
            [&] { return (TryNewField(name_space).exit_code == 0) == known; });
  }
  CommandResult Patch(const JobUnderTest& job, const json& patch) {
    return plane_.Kubectl({"patch", "htj", job.name(), "-n", job.key().name_space, "--type=json",
                           "-p", patch.dump()});
  }
  static json Add(const std::string& path, const std::string& value) {
    return {{"op", "add"}, {"path", path}, {"value", value}};
  }
  static json Remove(const std::string& path) { return {{"op", "remove"}, {"path", path}}; }

  ControlPlane& plane_ = ControlPlane::Get();
};

constexpr char kOld[] = "/spec/runPolicy/managedBy";
constexpr char kNew[] = "/spec/managedBy";

TEST_F(ManagedBy, TheDefinitionIsUpgradedUnderAJobThatSomebodyElseManages) {
  World::Get();
  TestNamespace space("upgrade");
  Apply(ReleasedDefinition());
  WaitForNewField(space.name(), false);
  OperatorProcess process;
  json manifest = MakeJob("theirs");
  manifest["spec"]["runPolicy"]["managedBy"] = "example.com/other";
  JobUnderTest theirs(space.name(), manifest);
  JobUnderTest ours(space.name(), MakeJob("ours", {{"steps", 20}, {"holdAtStep", 10}}));
  ASSERT_TRUE(ours.WaitIs("Running"));
  Apply(OwnDefinition());
  WaitForNewField(space.name(), true);
  // What its manager writes goes through, and nobody else writes.
  EXPECT_EQ(Patch(theirs, json::array({Add("/spec/runPolicy/suspend", "x")})).exit_code, 1);
  theirs.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  theirs.PatchSpec({{"runPolicy", {{"suspend", false}}}});
  const CommandResult another = Patch(theirs, json::array({Add(kOld, "example.com/another")}));
  EXPECT_NE(another.exit_code, 0);
  EXPECT_THAT(another.output, HasSubstr("managedBy is immutable"));
  EXPECT_NE(Patch(theirs, json::array({Remove(kOld)})).exit_code, 0);
  const CommandResult both = Patch(theirs, json::array({Add(kNew, "example.com/other")}));
  EXPECT_NE(both.exit_code, 0);
  EXPECT_THAT(both.output, HasSubstr("name one of the two"));
  const json moved = json::array({Remove(kOld), Add(kNew, "example.com/other")});
  const CommandResult switched = Patch(theirs, moved);
  EXPECT_EQ(switched.exit_code, 0) << switched.output;
  EXPECT_EQ(theirs.Get()["spec"]["managedBy"], "example.com/other");
  EXPECT_NE(Patch(theirs, json::array({Add(kNew, "example.com/another")})).exit_code, 0);
  EXPECT_NE(Patch(theirs, json::array({Remove(kNew)})).exit_code, 0);
  EXPECT_NE(Patch(ours, json::array({Add(kNew, "example.com/other")})).exit_code, 0);
  ours.Continue();
  ASSERT_TRUE(ours.WaitIs("Succeeded"));
  EXPECT_TRUE(theirs.Children().empty());
  EXPECT_TRUE(theirs.Status().empty()) << theirs.Status();
}

}  // namespace
}  // namespace hetero::testing
