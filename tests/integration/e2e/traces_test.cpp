// That keys are found which a cluster shows for a moment: by whom the tests of buckets are believed
// when they find none.
#include "tests/integration/e2e/support/traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/integration/storage/s3_server.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using storage::S3Server;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "header.of-a-token.c2lnbmF0dXJlLW9mLWEtdG9rZW4";

json Named(const std::string& name_space, const char* kind, const char* name) {
  return {{"apiVersion", "v1"},
          {"kind", kind},
          {"metadata", {{"name", name}, {"namespace", name_space}}}};
}

// Prints the key that it has from a Secret, and leaves it in a file that is named as core files
// are. The kernel's own would need a machine that writes them there.
json PodThatTells(const std::string& name_space) {
  const json secret = {{"secretKeyRef", {{"name", "planted"}, {"key", "key"}}}};
  json pod = Named(name_space, "Pod", "tells");
  pod["spec"] = {
      {"restartPolicy", "Never"},
      {"terminationGracePeriodSeconds", 1},
      {"automountServiceAccountToken", false},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", 65532},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"volumes", json::array({{{"name", "work"}, {"emptyDir", json::object()}}})},
      {"containers",
       json::array({{{"name", "runtime"},
                     {"image", "hetero-test-python:1"},
                     {"workingDir", "/work"},
                     {"command",
                      {"sh", "-c",
                       R"(printf %s "$KEY" >core.1; echo "key: $KEY"; echo "${TOKEN##*.}";)"
                       R"( exec sleep 600)"}},
                     {"env", json::array({{{"name", "KEY"}, {"valueFrom", secret}},
                                          {{"name", "TOKEN"}, {"value", kToken}}})},
                     {"volumeMounts", json::array({{{"name", "work"}, {"mountPath", "/work"}}})},
                     {"securityContext",
                      {{"allowPrivilegeEscalation", false},
                       {"readOnlyRootFilesystem", true},
                       {"capabilities", {{"drop", {"ALL"}}}}}}}})}};
  return pod;
}

TEST(Traces, TellWhatIsPlantedAndGoneAgain) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  ControlPlane& plane = ControlPlane::Get();
  JobNamespace space("traces");
  Traces traces(space.name());
  json secret = Named(space.name(), "Secret", "planted");
  secret["stringData"] = {{"key", S3Server::kSecret}};
  plane.MustKubectl({"apply", "-f", "-"}, secret.dump());
  traces.TakeObjects("beside-the-secret");

  plane.MustKubectl({"apply", "-f", "-"}, PodThatTells(space.name()).dump());
  const auto log = [&] { return plane.Kubectl({"logs", "tells", "-n", space.name()}).output; };
  ASSERT_TRUE(WaitFor(
      "the pod tells its key",
      [&] { return log().find("\nc2lnbmF0dXJlLW9m") != std::string::npos; }, seconds(120),
      [&] {
        return plane.Kubectl({"describe", "pod", "tells", "-n", space.name()}).output;
      }));
  EXPECT_FALSE(Nodes::RuntimeIsNonDumpable(space.name(), "tells")) << "it holds back nothing";

  json manifest = SlowJob("planted");
  manifest["spec"]["runPolicy"]["suspend"] = true;
  manifest["metadata"]["annotations"]["note"] = absl::Base64Escape(S3Server::kOtherSecret);
  const JobUnderTest job(space.name(), manifest);
  job.Delete();
  json event = Named(space.name(), "Event", "planted");
  event["involvedObject"] = {{"kind", "Pod"}, {"name", "tells"}, {"namespace", space.name()}};
  event["message"] = absl::StrCat("with ", S3Server::kSessionToken, "0");
  plane.MustKubectl({"create", "-f", "-"}, event.dump());
  plane.MustKubectl({"delete", "event", "planted", "-n", space.name()});
  json config = Named(space.name(), "ConfigMap", "planted");
  config["binaryData"] = {{"key", absl::Base64Escape(absl::StrCat("=", S3Server::kKey))}};
  plane.MustKubectl({"create", "-f", "-"}, config.dump());
  plane.MustKubectl({"delete", "configmap", "planted", "-n", space.name()});

  const std::string node =
      plane.Object(kube::kPods, {space.name(), "tells"})["spec"].value("nodeName", "");
  plane.MustKubectl({"delete", "pod", "tells", "-n", space.name()});
  const std::string until_gone =  // for ten seconds; a look from here costs more than one there
      absl::StrCat("for i in $(seq 20); do ls /var/log/pods/", space.name(),
                   "_tells_*/runtime/* || exit 1; sleep 0.5; done");
  ASSERT_TRUE(WaitFor("the kubelet has removed the pod's log", [&] {
    return Nodes::Run(node, {"sh", "-c", until_gone}).exit_code == 1;
  }));

  const std::vector<std::string> found = traces.Search({kToken});
  const auto tells = [&found](const std::string& where, const std::string& what) {
    EXPECT_THAT(found, Contains(AllOf(HasSubstr(where), HasSubstr(": " + what))));
  };
  tells("/states-of-heterotrainingjobs, ", "kOtherSecret in base64");
  tells("/states-of-events, ", "kSessionToken");
  tells("/states-of-configmaps, ", "kKey in base64");
  tells(absl::StrCat("/", node, "/pods/", space.name(), "_tells_"), "kSecret");
  tells(absl::StrCat("/", node, "/pods/", space.name(), "_tells_"), "the signature of token 1");
  tells(absl::StrCat("/", node, "/core_files/"), "kSecret");
  tells("/states-of-pods, ", "token 1");  // in its own environment as text
  EXPECT_THAT(found, Not(Contains(HasSubstr("/objects-beside-the-secret, "))));
}

}  // namespace
}  // namespace hetero::testing
