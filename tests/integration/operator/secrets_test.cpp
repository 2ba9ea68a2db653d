#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/integration/operator/support/secret_search.h"
#include "tests/integration/operator/support/world.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/support/temporary_folder.h"

// A job whose containers get keys of a bucket: where on the control plane those are found.
namespace hetero::testing {
namespace {

using storage::S3Server;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFromSecret[] = "hetero/Cluster+Secret/Key/0123456789abcdef";
constexpr char kFromSecretInBase64[] = "aGV0ZXJvL0NsdXN0ZXIrU2VjcmV0L0tleS8wMTIzNDU2Nzg5YWJjZGVm";
constexpr char kInTemplate[] = "hetero/Template+Secret/Key/0123456789abcdef";

class Secrets : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::Get();
    operator_ = new OperatorProcess();
    WaitFor("the operator is ready", [] { return operator_->ready(); });
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(operator_->Stop(), 0);
    delete operator_;
  }

  // Every role's container gets one key by reference, and another as text.
  static json JobWithKeys(const std::string& name, const json& script) {
    json job = MakeJob(name, script);
    const json variables =
        json::array({{{"name", "AWS_SECRET_ACCESS_KEY"},
                      {"valueFrom", {{"secretKeyRef", {{"name", "bucket"}, {"key", "secret"}}}}}},
                     {{"name", "AWS_SESSION_TOKEN"}, {"value", kInTemplate}}});
    for (json& role : job["spec"]["roles"]) {
      role["template"]["spec"]["containers"] =
          json::array({{{"name", "runtime"}, {"env", variables}}});
    }
    return job;
  }
  static void ExpectNone(const std::string& where, const std::string& text,
                         const std::vector<std::string>& secrets) {
    EXPECT_FALSE(text.empty()) << where;
    for (const std::string& secret : secrets) {
      const size_t offset = text.find(secret);
      EXPECT_EQ(offset, std::string::npos) << where << ", offset " << offset << ": "
                                           << text.substr(offset < 200 ? 0 : offset - 200, 200);
    }
  }
  // All that the API has of the namespace but its Secrets, the operator's log and its metrics.
  void ExpectNoSecretIn(const TestNamespace& space) {
    const std::vector<std::string> of_secret = {kFromSecret, kFromSecretInBase64};
    const std::vector<std::string> all = {kFromSecret, kFromSecretInBase64, kInTemplate};
    for (const char* kind : {"configmaps", "events", "events.events.k8s.io", "services",
                             "networkpolicies", "leases"}) {
      ExpectNone(kind, plane_.MustKubectl({"get", kind, "-n", space.name(), "-o", "yaml"}), all);
    }
    for (const char* kind : {"htj", "pods"}) {
      ExpectNone(kind, plane_.MustKubectl({"get", kind, "-n", space.name(), "-o", "yaml"}),
                 of_secret);
    }
    ExpectNone("the operator's log", operator_->log(), all);
    ExpectNone("the operator's metrics", operator_->metrics(), all);
  }

  // The same, for the keys of S3Server in whatever form.
  std::vector<std::string> FindKeys(const TestNamespace& space) const {
    const TemporaryFolder folder;
    for (const auto& [what, text] :
         std::map<std::string, std::string>{{"objects", ObjectsWithoutSecrets(space.name())},
                                            {"log", operator_->log()},
                                            {"metrics", operator_->metrics()}}) {
      EXPECT_FALSE(text.empty()) << what;
      folder.Write(what, text);
    }
    return FindSecrets(folder.path());
  }

  static OperatorProcess* operator_;
  ControlPlane& plane_ = ControlPlane::Get();
};
OperatorProcess* Secrets::operator_ = nullptr;

TEST_F(Secrets, OfABucketAreOnlyWhereTheUserHasPutThem) {
  TestNamespace space("secrets");
  plane_.MustKubectl({"create", "secret", "generic", "bucket", "-n", space.name(),
                      std::string("--from-literal=secret=") + kFromSecret});
  json manifest = JobWithKeys("reads", {{"steps", 100000}, {"stepMillis", 50}});
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const json variables = job.Pod("cpu", 0)["spec"]["containers"][0]["env"];
  EXPECT_NE(variables.dump().find("secretKeyRef"), std::string::npos) << variables;
  ExpectNoSecretIn(space);
  job.EndPod("gpu", 0, 1, "spec.training.checkpoint.uri: HTTP 403 SignatureDoesNotMatch");
  ASSERT_TRUE(job.WaitIs("Failed"));
  ExpectNoSecretIn(space);
}

// The operator names them to the kubelet, and has no right to read them.
TEST_F(Secrets, OfStorageAreNamedInPodsAndFoundNowhere) {
  TestNamespace space("storage");
  const std::map<std::string, std::string> keys = {{"ACCESS_KEY_ID", S3Server::kKey},
                                                   {"SECRET_ACCESS_KEY", S3Server::kSecret},
                                                   {"SESSION_TOKEN", S3Server::kSessionToken}};
  json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata", {{"name", "bucket-keys"}, {"namespace", space.name()}}}};
  for (const auto& [name, value] : keys) secret["stringData"]["AWS_" + name] = value;
  plane_.MustKubectl({"apply", "-f", "-"}, secret.dump());
  json manifest = MakeJob("reads", {{"steps", 100000}, {"stepMillis", 50}});
  manifest["spec"]["storage"] = json::array({{{"prefix", "s3://bucket"},
                                              {"endpoint", "http://minio:9000"},
                                              {"region", S3Server::kRegion},
                                              {"secretRef", {{"name", "bucket-keys"}}}}});
  manifest["spec"]["runPolicy"]["maxRestarts"] = 0;
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  for (const auto& [role, index] :
       std::vector<std::pair<std::string, int>>{{"head", 0}, {"cpu", 0}, {"cpu", 1}, {"gpu", 0}}) {
    std::map<std::string, json> variables;
    const json pod = job.Pod(role, index);
    for (const json& variable : pod["spec"]["containers"][0]["env"]) {
      variables[variable["name"]] = variable;
    }
    for (const auto& [name, value] : keys) {
      const json variable = variables["HETERO_STORAGE_0_" + name];
      const json reference = {{"name", "bucket-keys"}, {"key", "AWS_" + name}, {"optional", true}};
      EXPECT_EQ(variable.value("/valueFrom/secretKeyRef"_json_pointer, json()), reference) << role;
      EXPECT_FALSE(variable.contains("value")) << role;
    }
  }
  EXPECT_THAT(FindKeys(space), IsEmpty());
  job.EndPod("gpu", 0, 1, "spec.training.checkpoint.uri: HTTP 403 SignatureDoesNotMatch");
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_THAT(FindKeys(space), IsEmpty());

  plane_.MustKubectl({"create", "configmap", "planted", "-n", space.name(),
                      std::string("--from-literal=key=") + S3Server::kSecret});
  EXPECT_THAT(FindKeys(space), Contains(AllOf(HasSubstr("/objects, "), HasSubstr(": kSecret"))));
}

// What cannot be used is repeated to the user.
TEST_F(Secrets, OfATemplateThatIsRefusedAreNotRepeated) {
  TestNamespace space("refused");
  json manifest = JobWithKeys("refused", {{"steps", 3}});
  RoleOf(manifest, "cpu")["template"]["spec"]["containers"][0]["env"].push_back(
      {{"name", "HETERO_ROLE"}, {"value", kInTemplate}});
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_NE(job.Message("Failed").find("HETERO_"), std::string::npos) << job.Describe();
  ExpectNone("the job's status", job.Status().dump(), {kInTemplate});
  for (const char* kind : {"events", "events.events.k8s.io"}) {
    ExpectNone(kind, plane_.MustKubectl({"get", kind, "-n", space.name(), "-o", "yaml"}),
               {kInTemplate});
  }
}

}  // namespace
}  // namespace hetero::testing
