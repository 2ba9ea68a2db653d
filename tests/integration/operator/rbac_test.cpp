#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/integration/operator/support/world.h"
#include "tests/support/paths.h"

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
  std::ifstream file(testing::SourceDir() + "/tests/integration/operator/rbac_" + name + ".txt");
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
      RunCommand({"helm", "install", "narrow", testing::SourceDir() + "/charts/hetero-operator",
                  "--namespace", "narrow", "--create-namespace", "--skip-crds", "--set",
                  "replicas=0", "--set", "watchNamespaces={" + inside.name() + "}"});
  ASSERT_EQ(install.exit_code, 0) << install.output;
  const std::string account = "narrow-hetero-operator";
  EXPECT_EQ(CanI("narrow:" + account, inside.name()), Table("watched_namespace"));
  EXPECT_TRUE(CanI("narrow:" + account, outside.name()).empty());
  const std::string kubeconfig = plane.ServiceAccountKubeconfig(plane.server(), "narrow", account);
  BackgroundProgram narrow({testing::BinDir() + "/hetero-operator", "--kubeconfig", kubeconfig,
                            "--watch-namespaces", inside.name(), "--operator-namespace", "narrow",
                            "--lease-namespace", "narrow", "--metrics-listen", "127.0.0.1:0",
                            "--probes-listen", "127.0.0.1:0", "--page-listen", "none"},
                           plane.folder() + "/narrow.log");
  JobUnderTest theirs(outside.name(), MakeJob("job"));
  JobUnderTest ours(inside.name(), MakeJob("job", {{"steps", 5}}));
  EXPECT_TRUE(ours.WaitIs("Succeeded")) << narrow.log();
  EXPECT_TRUE(ours.WaitGone());
  EXPECT_TRUE(theirs.Children().empty());
  EXPECT_EQ(narrow.log().find("forbidden"), std::string::npos) << narrow.log();
}

// What examples/clusters/locked-down says, word by word: an administrator's part, then a team that
// is `admin` of two namespaces and nothing else. Only the container that runs the operator is a
// process of ours, and NetworkPolicies are not enforced here (see the end-to-end tests).
class LockedDown : public ::testing::Test {
 protected:
  static CommandResult Helm(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "helm");
    arguments.insert(arguments.end(),
                     {"hetero", testing::SourceDir() + "/charts/hetero-operator", "--namespace",
                      "vision-operator", "-f", kExample + "values.yaml"});
    return RunCommand(arguments);
  }

  void SetUp() override {
    World::Get();
    plane_.MustKubectl({"apply", "-f", kExample + "cluster.yaml"});
    const CommandResult roles =
        Helm({"template", "--set", "rbac.create=true,rbac.aggregate=true", "--show-only",
              "templates/rbac.yaml", "--show-only", "templates/user-roles.yaml"});
    ASSERT_EQ(roles.exit_code, 0) << roles.output;
    // The World's own release has made ClusterRoles of this name, which are the same.
    plane_.MustKubectl({"apply", "--server-side", "--force-conflicts", "-f", "-"}, roles.output);
    for (const char* space : {"vision", "vision-operator"}) {
      plane_.MustKubectl({"create", "rolebinding", "team", "--clusterrole=admin",
                          "--group=vision-team", "-n", space});
      WaitFor("the default ServiceAccount", [&] {
        return !plane_.Object({"", "v1", "serviceaccounts", true}, {space, "default"}).is_null();
      });
    }
    WaitFor("the rights of `admin` cover jobs", [&] {
      return plane_
                 .Kubectl({"auth", "can-i", "create", "heterotrainingjobs", "--as=bob",
                           "--as-group=vision-team", "-n", "vision"})
                 .exit_code == 0;
    });
  }
  void TearDown() override {
    plane_.Kubectl({"delete", "namespace", "vision", "vision-operator", "--wait=false"});
  }

  // The example's job with fewer steps to play.
  json Job() const {
    json job = json::parse(plane_.MustKubectl(
        {"create", "--dry-run=client", "-o", "json", "-f", kExample + "job.yaml"}));
    job["metadata"]["annotations"]["fake.hetero.dev/script"] = R"({"steps": 5})";
    return job;
  }

  inline static const std::string kExample =
      testing::SourceDir() + "/examples/clusters/locked-down/";
  ControlPlane& plane_ = ControlPlane::Get();
};

TEST_F(LockedDown, ATeamInstallsAndRunsWithoutRightsOnTheCluster) {
  const CommandResult install = Helm({"install", "--skip-crds", "--set", "replicas=0",
                                      "--kube-as-user", "bob", "--kube-as-group", "vision-team"});
  ASSERT_EQ(install.exit_code, 0) << install.output;
  const std::string kubeconfig =
      plane_.ServiceAccountKubeconfig(plane_.server(), "vision-operator", "hetero-hetero-operator");
  BackgroundProgram program(
      {testing::BinDir() + "/hetero-operator", "--kubeconfig", kubeconfig, "--watch-namespaces",
       "vision", "--operator-namespace", "vision-operator", "--lease-namespace", "vision-operator",
       "--metrics-listen", "127.0.0.1:0", "--probes-listen", "127.0.0.1:0", "--page-listen",
       "none"},
      plane_.folder() + "/locked-down.log");
  const json manifest = Job();
  json silent = manifest;
  for (json& role : silent["spec"]["roles"]) role.erase("template");
  const auto named = [](json job, const char* name) {
    job["metadata"]["name"] = name;
    return job;
  };

  // Without the LimitRange first: the API server goes by one that is gone for another 30 s.
  plane_.MustKubectl({"delete", "limitrange", "containers", "-n", "vision"});
  JobUnderTest unlimited("vision", named(silent, "unlimited"));
  WaitFor(
      "the ResourceQuota's wish is told",
      [&] {
        return unlimited.Message("PodsCreated").find("a ResourceQuota wants") != std::string::npos;
      },
      kPatience, [&] { return unlimited.Describe() + program.log(); });
  EXPECT_EQ(unlimited.Reason("PodsCreated"), "CreateFailed");
  unlimited.Delete();
  JobUnderTest limited("vision", named(manifest, "limited"));
  EXPECT_TRUE(limited.WaitIs("Succeeded")) << "the example says all that a quota asks for";

  plane_.MustKubectl({"apply", "-f", kExample + "cluster.yaml"});
  JobUnderTest job("vision", manifest);
  EXPECT_TRUE(job.WaitIs("Succeeded")) << program.log();
  EXPECT_TRUE(job.WaitGone());
  JobUnderTest above("vision", named(silent, "above"));
  WaitFor(
      "the LimitRange's default is told",
      [&] {
        return above.Message("PodsCreated").find("LimitRange's default") != std::string::npos;
      },
      kPatience, [&] { return above.Describe() + program.log(); });
  EXPECT_EQ(program.log().find(" in API group "), std::string::npos)
      << "a right is missing: " << program.log();
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
