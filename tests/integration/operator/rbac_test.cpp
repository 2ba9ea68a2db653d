#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/integration/operator/support/world.h"

// The rights that the chart gives: what they are, and that they are enough.
namespace hetero::testing {
namespace {

// Lines of `kubectl auth can-i --list` that are not everybody's, with single spaces, sorted.
std::set<std::string> Rights(const std::string& table) {
  std::set<std::string> rights;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);  // heading
  while (std::getline(lines, line)) {
    if (line.find("[/") != std::string::npos || line.find("selfsubject") != std::string::npos)
      continue;
    std::istringstream words(line);
    std::string right, word;
    while (words >> word) right += (right.empty() ? "" : " ") + word;
    if (!right.empty()) rights.insert(right);
  }
  return rights;
}

std::set<std::string> Table(const std::string& name) {
  std::ifstream file(std::string(HETERO_SOURCE_DIR "/tests/integration/operator/rbac_") + name +
                     ".txt");
  EXPECT_TRUE(file.good()) << name;
  std::set<std::string> rights;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') rights.insert(line);
  }
  return rights;
}

std::set<std::string> CanI(const std::string& account, const std::string& name_space) {
  return Rights(ControlPlane::Get().MustKubectl(
      {"auth", "can-i", "--list", "--as=system:serviceaccount:" + account, "-n", name_space}));
}

TEST(Rbac, ClusterModeIsTheCheckedInTable) {
  const std::string account = std::string(kSystemNamespace) + ":" + World::Get().account();
  EXPECT_EQ(CanI(account, "default"), Table("cluster"));
  EXPECT_EQ(CanI(account, kSystemNamespace), Table("own_namespace"));
}

TEST(Rbac, NamespacedModeSeesItsNamespacesOnly) {
  World::Get();
  ControlPlane& plane = ControlPlane::Get();
  TestNamespace inside("inside"), outside("outside");
  const CommandResult install =
      RunCommand({"helm", "install", "narrow", HETERO_SOURCE_DIR "/charts/hetero-operator",
                  "--namespace", "narrow", "--create-namespace", "--skip-crds", "--set",
                  "replicas=0", "--set", "watchNamespaces={" + inside.name() + "}"});
  ASSERT_EQ(install.exit_code, 0) << install.output;
  const std::string account = "narrow-hetero-operator";
  EXPECT_EQ(CanI("narrow:" + account, inside.name()), Table("watched_namespace"));
  EXPECT_TRUE(CanI("narrow:" + account, outside.name()).empty());
  const std::string kubeconfig = plane.ServiceAccountKubeconfig(plane.server(), "narrow", account);
  BackgroundProgram narrow(
      {HETERO_BIN_DIR "/hetero-operator", "--kubeconfig", kubeconfig, "--watch-namespaces",
       inside.name(), "--operator-namespace", "narrow", "--lease-namespace", "narrow",
       "--metrics-listen", "127.0.0.1:0", "--probes-listen", "127.0.0.1:0"},
      plane.folder() + "/narrow.log");
  JobUnderTest theirs(outside.name(), MakeJob("job"));
  JobUnderTest ours(inside.name(), MakeJob("job", {{"steps", 5}}));
  EXPECT_TRUE(ours.WaitIs("Succeeded")) << narrow.log();
  EXPECT_TRUE(ours.WaitGone());
  EXPECT_TRUE(theirs.Children().empty());
  EXPECT_EQ(narrow.log().find("forbidden"), std::string::npos) << narrow.log();
}

TEST(Rbac, EditorsAndViewersOfTheChart) {
  World::Get();
  ControlPlane& plane = ControlPlane::Get();
  TestNamespace space("people");
  plane.MustKubectl(
      {"create", "rolebinding", "ed", "--clusterrole=edit", "--user=ed", "-n", space.name()});
  plane.MustKubectl(
      {"create", "rolebinding", "vi", "--clusterrole=view", "--user=vi", "-n", space.name()});
  auto can = [&](const std::string& who, const std::string& verb) {
    return plane
               .Kubectl(
                   {"auth", "can-i", verb, "heterotrainingjobs", "--as=" + who, "-n", space.name()})
               .exit_code == 0;
  };
  EXPECT_TRUE(can("ed", "create"));
  EXPECT_TRUE(can("ed", "delete"));
  EXPECT_TRUE(can("vi", "get"));
  EXPECT_FALSE(can("vi", "create"));
}

}  // namespace
}  // namespace hetero::testing
