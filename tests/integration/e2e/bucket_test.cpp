// Data, checkpoints and results in a bucket that every node reaches, with keys from a Secret, or
// for the token of a service account; and neither keys nor tokens are found in anything that the
// cluster shows of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/integration/e2e/support/traces.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/storage/web_identity.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using storage::BucketForTemporaryKeys;
using storage::S3Server;
using storage::TokenService;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// This machine, as pods of that node see it.
std::string GatewayOf(const std::string& node) {
  std::istringstream route(Nodes::MustRun(node, {"ip", "-4", "route", "show", "default"}));
  std::string word;
  while (route >> word && word != "via") continue;
  route >> word;
  return word;
}

void MustRun(std::vector<std::string> command, const S3Server& server) {
  std::vector<std::string> with_keys = {"env", std::string("AWS_ACCESS_KEY_ID=") + S3Server::kKey,
                                        std::string("AWS_SECRET_ACCESS_KEY=") + S3Server::kSecret,
                                        std::string("AWS_REGION=") + S3Server::kRegion,
                                        "AWS_ENDPOINT_URL=" + server.endpoint()};
  with_keys.insert(with_keys.end(), command.begin(), command.end());
  const CommandResult result = RunCommand(with_keys, "", seconds(120));
  ASSERT_EQ(result.exit_code, 0) << result.output;
}

// A bucket of packed pictures on this machine, which pods of all nodes reach.
class BucketOfPictures {
 public:
  BucketOfPictures() : server_(/*tls=*/false, S3Server::kKey, S3Server::kSecret, host_) {
    server_.MakeBucket("bucket");
    const std::string runtime = testing::BinDir() + "/hetero-runtime";
    MustRun({runtime, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples",
             "768", "--validation-samples", "10", "--size", "32", folder_ / "pictures"},
            server_);
    MustRun({runtime, "pack", pictures(), "s3://bucket/set", "--shard-size", "200KB"}, server_);
  }
  const S3Server& server() const { return server_; }
  std::string pictures() const { return folder_ / "pictures/train"; }

 private:
  const std::string host_ = GatewayOf(Nodes::Workers().front());
  const S3Server server_;
  TemporaryFolder folder_;
};

// 288 steps of 16 pictures, in about 30 s.
json PicturesJob(const std::string& folder) {
  json job = SlowJob("bucket");
  json& spec = job["spec"];
  spec["training"]["epochs"] = 6;
  spec["dataset"] = {{"uri", "file://" + folder}, {"format", "ImageFolder"}, {"classes", 10}};
  spec["pipeline"].insert(
      spec["pipeline"].begin(),
      {{{"op", "Decode"}}, {{"op", "Resize"}, {"size", {{"height", 16}, {"width", 16}}}}});
  return job;
}

json BucketJob(const json& pictures, const S3Server& server) {
  json job = pictures;
  json& spec = job["spec"];
  spec["dataset"] = {{"uri", "s3://bucket/set"}, {"format", "WebDataset"}, {"classes", 10}};
  spec["storage"] = json::array({{{"prefix", "s3://bucket"},
                                  {"endpoint", server.endpoint()},
                                  {"region", S3Server::kRegion},
                                  {"secretRef", {{"name", "bucket-keys"}}}}});
  spec["training"]["checkpoint"] = {{"uri", "s3://bucket/checkpoints"}, {"everySteps", 20}};
  spec["output"]["uri"] = "s3://bucket/output";
  return job;
}

std::string BytesOf(const storage::Store& store, const storage::Object& object) {
  std::string bytes(static_cast<size_t>(object.size), '\0');
  const absl::Status read =
      store.Read(object, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_TRUE(read.ok()) << object.name << ": " << read;
  return bytes;
}

json ReadJson(const storage::Store& store, const std::string& name) {
  const absl::StatusOr<storage::Object> object = store.Head(name);
  EXPECT_TRUE(object.ok()) << object.status();
  if (!object.ok()) return json::object();
  return json::parse(BytesOf(store, *object), nullptr, /*allow_exceptions=*/false);
}

// Of all pods of PicturesJob().
std::vector<kube::ObjectKey> PodKeysOf(const JobUnderTest& job) {
  return {job.PodKey("head", 0), job.PodKey("cpu", 0), job.PodKey("cpu", 1), job.PodKey("gpu", 0),
          job.PodKey("gpu", 1)};
}

// A worker that reads the bucket is killed, then all ranks, which go on from a checkpoint in it.
TEST(Bucket, HasTheStreamOfTheFolderOnNodesWhateverDies) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  const BucketOfPictures bucket;
  ASSERT_FALSE(HasFatalFailure());
  const S3Server& server = bucket.server();
  const json local = PicturesJob(bucket.pictures());
  const std::string digest = LocalReport(local).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());

  JobNamespace space("bucket");
  Traces traces(space.name());
  const json secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", "bucket-keys"}, {"namespace", space.name()}}},
      {"stringData",
       {{"AWS_ACCESS_KEY_ID", S3Server::kKey}, {"AWS_SECRET_ACCESS_KEY", S3Server::kSecret}}}};
  ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, secret.dump());
  const JobUnderTest job(space.name(), BucketJob(local, server));
  ASSERT_TRUE(WaitStep(job, 5)) << Logs(job, "cpu", 0) << Logs(job, "gpu", 0);
  for (const kube::ObjectKey& pod : PodKeysOf(job)) {
    EXPECT_TRUE(Nodes::RuntimeIsNonDumpable(pod.name_space, pod.name)) << pod.name;
  }
  traces.TakeObjects("in-training");
  const std::string worker = job.PodUid("cpu", 0);
  Nodes::KillRuntime(space.name(), job.PodKey("cpu", 0).name);
  ASSERT_TRUE(WaitReplaced(job, "cpu", 0, worker));
  ASSERT_TRUE(WaitStep(job, 45));
  const std::string ranks[] = {job.PodUid("gpu", 0), job.PodUid("gpu", 1)};
  for (const int rank : {0, 1}) Nodes::KillRuntime(space.name(), job.PodKey("gpu", rank).name);
  for (const int rank : {0, 1}) ASSERT_TRUE(WaitReplaced(job, "gpu", rank, ranks[rank]));
  ExpectSucceededWithDigest(job, digest);

  const auto store = *storage::OpenStore("s3://bucket", server.Options());
  const absl::StatusOr<std::vector<storage::Object>> left = store->List("");
  ASSERT_TRUE(left.ok()) << left.status();
  std::vector<std::string> names;
  for (const storage::Object& object : *left) {
    names.push_back(object.name);
    if (object.size > 0) traces.Add("bucket/" + object.name, BytesOf(*store, object));
  }
  EXPECT_THAT(names, IsSupersetOf(
                         {"output/report.json", "output/report.html", "output/model.safetensors"}));
  EXPECT_THAT(names,
              Contains(AllOf(StartsWith("checkpoints/step-000000000288"), EndsWith("/DONE"))));
  EXPECT_GE(ReadJson(*store, "output/report.json").value("resumedFromStep", 0), 40);
  EXPECT_THAT(traces.Search(), IsEmpty());
}

// Whose token it is, by the cluster itself: issuer, signature, audience and end are its matter.
std::optional<TokenService::Owner> ReviewToken(const std::string& token,
                                               const std::string& audience) {
  const json review = {{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenReview"},
                       {"spec", {{"token", token}, {"audiences", json::array({audience})}}}};
  const absl::StatusOr<json> reply = ControlPlane::Get().client().Create(
      {"authentication.k8s.io", "v1", "tokenreviews", /*namespaced=*/false}, "", review);
  EXPECT_TRUE(reply.ok()) << reply.status();
  if (!reply.ok()) return std::nullopt;
  const json status = reply->value("status", json::object());
  const std::vector<std::string> audiences = status.value("audiences", std::vector<std::string>());
  if (!status.value("authenticated", false) || audiences != std::vector{audience}) {
    return std::nullopt;
  }
  const json user = status.value("user", json::object());
  const std::vector<std::string> pods =
      user.value("extra", json::object())
          .value("authentication.kubernetes.io/pod-name", std::vector<std::string>());
  return TokenService::Owner{user.value("username", ""), pods.empty() ? "" : pods.front()};
}

// What EKS puts into the pods of a service account that is annotated with a role.
void AssumeRole(json& job, const std::string& account, const TokenService& service) {
  for (const char* role : {"head", "cpu", "gpu"}) {
    PodSpecOf(job, role)["serviceAccountName"] = account;
    PodSpecOf(job, role)["volumes"] =
        json::array({{{"name", "aws-iam-token"},
                      {"projected",
                       {{"sources", json::array({{{"serviceAccountToken",
                                                   {{"audience", TokenService::kAudience},
                                                    {"expirationSeconds", 86400},
                                                    {"path", "token"}}}}})}}}}});
    json& runtime = RuntimeOf(job, role);
    const std::string folder = "/var/run/secrets/eks.amazonaws.com/serviceaccount";
    runtime["volumeMounts"] =
        json::array({{{"name", "aws-iam-token"}, {"mountPath", folder}, {"readOnly", true}}});
    runtime["env"] =
        json::array({{{"name", "AWS_ROLE_ARN"}, {"value", TokenService::kRole}},
                     {{"name", "AWS_WEB_IDENTITY_TOKEN_FILE"}, {"value", folder + "/token"}},
                     {{"name", "AWS_REGION"}, {"value", S3Server::kRegion}},
                     {{"name", "AWS_ENDPOINT_URL_STS"}, {"value", service.url()}}});
  }
}

// Nor is there a token for the cluster itself.
void ExpectNoKeys(const JobUnderTest& job) {
  for (const kube::ObjectKey& name : PodKeysOf(job)) {
    const json pod = ControlPlane::Get().Object(kube::kPods, name);
    ASSERT_TRUE(pod.is_object()) << job.Describe();
    const std::string text = pod.dump();
    for (const char* key : {S3Server::kKey, S3Server::kSecret, S3Server::kSessionToken,
                            "AWS_SECRET_ACCESS_KEY", "secretKeyRef"}) {
      EXPECT_THAT(text, Not(HasSubstr(key)));
    }
    EXPECT_FALSE(pod["spec"].value("automountServiceAccountToken", true)) << text;
    EXPECT_THAT(text, Not(HasSubstr("/var/run/secrets/kubernetes.io"))) << text;
  }
}

// What every account may do, and nothing else.
void ExpectNoRights(const std::string& name_space, const std::string& account) {
  ControlPlane& plane = ControlPlane::Get();
  EXPECT_THAT(plane.Objects({"rbac.authorization.k8s.io", "v1", "rolebindings"}, name_space),
              IsEmpty());
  for (const char* what : {"pods", "secrets", "configmaps", "heterotrainingjobs"}) {
    EXPECT_THAT(plane
                    .Kubectl({"auth", "can-i", "get", what, "--namespace", name_space, "--as",
                              absl::StrCat("system:serviceaccount:", name_space, ":", account)})
                    .output,
                StartsWith("no"))
        << what;
  }
}

// No key stands anywhere: pods show who they are, and get keys for it, which end before the job
// does. Whom the cluster does not know for this account, gets none.
TEST(Bucket, IsOpenToPodsByTheRoleOfTheirServiceAccount) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  const std::string host = GatewayOf(Nodes::Workers().front());
  const TemporaryFolder folder;
  const std::string runtime = testing::BinDir() + "/hetero-runtime";
  for (const auto& command : std::vector<std::vector<std::string>>{
           {runtime, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples",
            "768", "--validation-samples", "10", "--size", "32", folder / "pictures"},
           {runtime, "pack", folder / "pictures/train", folder / "set", "--shard-size", "200KB"}}) {
    const CommandResult result = RunCommand(command, "", seconds(120));
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  json local = PicturesJob(folder / "pictures/train");
  local["metadata"]["name"] = "role";
  const std::string digest = LocalReport(local).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());

  JobNamespace space("role");
  Traces traces(space.name());
  ControlPlane& plane = ControlPlane::Get();
  for (const char* account : {"reader", "stranger"}) {
    plane.MustKubectl({"create", "serviceaccount", account, "--namespace", space.name()});
  }
  // Keys are taken for ended ten seconds before they are (renewed_credentials.cpp).
  TokenService service({.host = host,
                        .account = absl::StrCat("system:serviceaccount:", space.name(), ":reader"),
                        .review = ReviewToken,
                        .lifetime = seconds(15)});
  const auto show_token = [&](const std::string& account, const std::string& audience) {
    std::string token = plane.MustKubectl(
        {"create", "token", account, "--namespace", space.name(), "--audience", audience});
    absl::StripAsciiWhitespace(&token);
    return service.AssumeRole(token, TokenService::kRole).first;
  };
  ASSERT_EQ(show_token("reader", TokenService::kAudience), 200);
  EXPECT_EQ(show_token("stranger", TokenService::kAudience), 403);
  EXPECT_EQ(show_token("reader", "https://kubernetes.default.svc.cluster.local"), 400);
  EXPECT_EQ(service.AssumeRole("gibberish", TokenService::kRole).first, 400);

  BucketForTemporaryKeys bucket(service, host);
  bucket.Fill(folder / "set", "set");
  json in_bucket = local;
  in_bucket["spec"]["dataset"] = {
      {"uri", "s3://bucket/set"}, {"format", "WebDataset"}, {"classes", 10}};
  in_bucket["spec"]["storage"] =
      json::array({{{"prefix", "s3://bucket"}, {"endpoint", bucket.url()}}});
  in_bucket["spec"]["output"]["uri"] = "s3://bucket/output";
  {
    json job_of_reader = in_bucket;
    AssumeRole(job_of_reader, "reader", service);
    const JobUnderTest job(space.name(), job_of_reader);
    ASSERT_TRUE(WaitStep(job, 5)) << Logs(job, "cpu", 0) << Logs(job, "gpu", 0);
    ExpectNoKeys(job);
    for (const int worker : {0, 1}) {  // they have opened the bucket
      EXPECT_TRUE(Nodes::RuntimeIsNonDumpable(space.name(), job.PodKey("cpu", worker).name));
    }
    traces.TakeObjects("in-training");
    ExpectNoRights(space.name(), "reader");
    ExpectSucceededWithDigest(job, digest);
    EXPECT_THAT(service.pods(),
                UnorderedElementsAre(job.PodKey("head", 0).name, job.PodKey("cpu", 0).name,
                                     job.PodKey("cpu", 1).name, job.PodKey("gpu", 0).name,
                                     job.PodKey("gpu", 1).name));
    for (const int worker : {0, 1}) {
      EXPECT_TRUE(service.OutlivedItsKeys(job.PodKey("cpu", worker).name)) << service.Describe();
    }
    const json report = json::parse(bucket.Get("output/report.json"), nullptr,
                                    /*allow_exceptions=*/false);
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report.value("streamDigest", ""), digest);
  }
  json job_of_stranger = in_bucket;
  job_of_stranger["metadata"]["name"] = "stranger";
  job_of_stranger["spec"]["runPolicy"]["maxRestarts"] = 0;
  AssumeRole(job_of_stranger, "stranger", service);
  const JobUnderTest job(space.name(), job_of_stranger);
  ASSERT_TRUE(job.WaitIs("Failed", seconds(180))) << job.Describe();
  EXPECT_THAT(job.Describe(), AllOf(HasSubstr("cannot assume the role"), HasSubstr("AccessDenied"),
                                    HasSubstr(TokenService::kRole)));

  for (const std::string& key : bucket.Keys()) {
    if (key.starts_with("output/")) traces.Add("bucket/" + key, bucket.Get(key));
  }
  const std::set<std::string> tokens = service.tokens();
  EXPECT_GE(tokens.size(), 7u) << "of two accounts, and of each of five pods";
  EXPECT_THAT(traces.Search({tokens.begin(), tokens.end()}), IsEmpty());
}

}  // namespace
}  // namespace hetero::testing
