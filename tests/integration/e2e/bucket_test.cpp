// Data, checkpoints and results in a bucket that every node reaches, with keys from a Secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/storage/http/url.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using storage::S3Server;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

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
    const std::string runtime = HETERO_BIN_DIR "/hetero-runtime";
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

json ReadJson(const storage::Store& store, const std::string& name) {
  const absl::StatusOr<storage::Object> object = store.Head(name);
  EXPECT_TRUE(object.ok()) << object.status();
  if (!object.ok()) return json::object();
  std::string bytes(static_cast<size_t>(object->size), '\0');
  const absl::Status read =
      store.Read(*object, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_TRUE(read.ok()) << read;
  return json::parse(bytes, nullptr, /*allow_exceptions=*/false);
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
  const json secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", "bucket-keys"}, {"namespace", space.name()}}},
      {"stringData",
       {{"AWS_ACCESS_KEY_ID", S3Server::kKey}, {"AWS_SECRET_ACCESS_KEY", S3Server::kSecret}}}};
  ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, secret.dump());
  const JobUnderTest job(space.name(), BucketJob(local, server));
  ASSERT_TRUE(WaitStep(job, 5)) << Logs(job, "cpu", 0) << Logs(job, "gpu", 0);
  EXPECT_THAT(Logs(job, "cpu", 0), Not(HasSubstr(S3Server::kSecret)));
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
  for (const storage::Object& object : *left) names.push_back(object.name);
  EXPECT_THAT(names, IsSupersetOf(
                         {"output/report.json", "output/report.html", "output/model.safetensors"}));
  EXPECT_THAT(names,
              Contains(AllOf(StartsWith("checkpoints/step-000000000288"), EndsWith("/DONE"))));
  EXPECT_GE(ReadJson(*store, "output/report.json").value("resumedFromStep", 0), 40);
}

// A bucket, to be read with temporary keys alone; the real server of these tests takes none.
class BucketForTemporaryKeys {
 public:
  BucketForTemporaryKeys(const std::string& folder, const std::string& host)
      : server_([this](const auto& request, auto& connection) { Answer(request, connection); },
                {.tls = false, .host = host}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.front() != '_') objects_[name] = ReadFileOrDie(entry.path().string());
    }
  }
  std::string url() const { return server_.url(); }

 private:
  static std::string HeaderOf(const kube::ScriptedServer::Request& request,
                              const std::string& name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
  }

  void Answer(const kube::ScriptedServer::Request& request,
              kube::ScriptedServer::Connection& connection) const {
    if (HeaderOf(request, "x-amz-security-token") != S3Server::kSessionToken ||
        HeaderOf(request, "authorization").find(S3Server::kKey) == std::string::npos) {
      return connection.Respond(403, "<Error><Code>InvalidAccessKeyId</Code></Error>");
    }
    const std::string folder = "/bucket/set/";
    if (request.target.find("list-type=2") != std::string::npos) {
      std::string list = "<ListBucketResult><IsTruncated>false</IsTruncated>";
      for (const auto& [name, bytes] : objects_) {
        absl::StrAppend(&list, "<Contents><Key>set/", name, "</Key><Size>", bytes.size(),
                        "</Size><ETag>&quot;v&quot;</ETag></Contents>");
      }
      return connection.Respond(200, absl::StrCat(list, "</ListBucketResult>"));
    }
    const auto found = request.target.rfind(folder, 0) == 0
                           ? objects_.find(request.target.substr(folder.size()))
                           : objects_.end();
    size_t first = 0, last = 0;
    if (found == objects_.end() ||
        sscanf(HeaderOf(request, "range").c_str(), "bytes=%zu-%zu", &first, &last) != 2) {
      return connection.Respond(404, "<Error><Code>NoSuchKey</Code></Error>");
    }
    connection.Respond(206, found->second.substr(first, last - first + 1),
                       absl::StrCat("ETag: \"v\"\r\nContent-Range: bytes ", first, "-", last, "/",
                                    found->second.size(), "\r\n"));
  }

  std::map<std::string, std::string> objects_;
  kube::ScriptedServer server_;
};

// Stands in for AWS STS: keys for a role, to one service account, by its token for this audience.
class TokenService {
 public:
  static constexpr char kAudience[] = "sts.amazonaws.com";
  static constexpr char kRole[] = "arn:aws:iam::123456789012:role/reader";

  TokenService(const std::string& host, std::string account)
      : account_(std::move(account)),
        server_([this](const auto& request, auto& connection) { Answer(request, connection); },
                {.tls = false, .host = host}) {}
  std::string url() const { return server_.url(); }
  // Names of the pods that were given keys.
  std::set<std::string> pods() const {
    const std::lock_guard lock(mutex_);
    return pods_;
  }

 private:
  static std::string FieldOf(const std::string& form, const std::string& name) {
    for (const absl::string_view pair : absl::StrSplit(form, '&')) {
      const std::pair<std::string, std::string> field =
          absl::StrSplit(pair, absl::MaxSplits('=', 1));
      if (field.first == name) return storage::UnescapeForm(field.second).value_or("");
    }
    return "";
  }

  // Whose token it is, by the cluster itself.
  void Answer(const kube::ScriptedServer::Request& request,
              kube::ScriptedServer::Connection& connection) {
    const json review = {{"apiVersion", "authentication.k8s.io/v1"},
                         {"kind", "TokenReview"},
                         {"spec",
                          {{"token", FieldOf(request.body, "WebIdentityToken")},
                           {"audiences", json::array({kAudience})}}}};
    const CommandResult reviewed =
        ControlPlane::Get().Kubectl({"create", "-f", "-", "-o", "json"}, review.dump());
    const json reply = json::parse(reviewed.output, nullptr, /*allow_exceptions=*/false);
    if (reviewed.exit_code != 0 || !reply.is_object()) return connection.Respond(500, "no review");
    const json status = reply.value("status", json::object());
    const json user = status.value("user", json::object());
    if (!status.value("authenticated", false) || user.value("username", "") != account_ ||
        FieldOf(request.body, "RoleArn") != kRole) {
      return connection.Respond(
          403,
          "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform "
          "sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>");
    }
    for (const json& pod : user.value("extra", json::object())
                               .value("authentication.kubernetes.io/pod-name", json::array())) {
      const std::lock_guard lock(mutex_);
      pods_.insert(pod.get<std::string>());
    }
    connection.Respond(
        200, absl::StrCat("<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
                          "<Credentials><AccessKeyId>",
                          S3Server::kKey, "</AccessKeyId><SecretAccessKey>", S3Server::kSecret,
                          "</SecretAccessKey><SessionToken>", S3Server::kSessionToken,
                          "</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
                          "</Credentials></AssumeRoleWithWebIdentityResult>"
                          "</AssumeRoleWithWebIdentityResponse>"));
  }

  const std::string account_;
  mutable std::mutex mutex_;
  std::set<std::string> pods_;
  kube::ScriptedServer server_;
};

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
                     {{"name", "AWS_ENDPOINT_URL_STS"}, {"value", service.url()}}});
  }
}

// No key stands anywhere: pods show who they are, and get keys for it.
TEST(Bucket, IsOpenToPodsByTheRoleOfTheirServiceAccount) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  const std::string host = GatewayOf(Nodes::Workers().front());
  const TemporaryFolder folder;
  const std::string runtime = HETERO_BIN_DIR "/hetero-runtime";
  for (const auto& command : std::vector<std::vector<std::string>>{
           {runtime, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples",
            "768", "--validation-samples", "10", "--size", "32", folder / "pictures"},
           {runtime, "pack", folder / "pictures/train", folder / "set", "--shard-size", "200KB"}}) {
    const CommandResult result = RunCommand(command, "", seconds(120));
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  const BucketForTemporaryKeys bucket(folder / "set", host);
  json local = PicturesJob(folder / "pictures/train");
  local["metadata"]["name"] = "role";
  local["spec"]["training"]["epochs"] = 1;
  const std::string digest = LocalReport(local).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());

  JobNamespace space("role");
  for (const char* account : {"reader", "stranger"}) {
    ControlPlane::Get().MustKubectl(
        {"create", "serviceaccount", account, "--namespace", space.name()});
  }
  const TokenService service(host, absl::StrCat("system:serviceaccount:", space.name(), ":reader"));
  json in_bucket = local;
  in_bucket["spec"]["dataset"] = {
      {"uri", "s3://bucket/set"}, {"format", "WebDataset"}, {"classes", 10}};
  in_bucket["spec"]["storage"] =
      json::array({{{"prefix", "s3://bucket"}, {"endpoint", bucket.url()}}});
  {
    json job_of_reader = in_bucket;
    AssumeRole(job_of_reader, "reader", service);
    const JobUnderTest job(space.name(), job_of_reader);
    ExpectSucceededWithDigest(job, digest);
    EXPECT_THAT(service.pods(),
                IsSupersetOf({job.PodKey("cpu", 0).name, job.PodKey("cpu", 1).name,
                              job.PodKey("gpu", 0).name, job.PodKey("gpu", 1).name}));
  }
  json job_of_stranger = in_bucket;
  job_of_stranger["metadata"]["name"] = "stranger";
  job_of_stranger["spec"]["runPolicy"]["maxRestarts"] = 0;
  AssumeRole(job_of_stranger, "stranger", service);
  const JobUnderTest job(space.name(), job_of_stranger);
  ASSERT_TRUE(job.WaitIs("Failed", seconds(180))) << job.Describe();
  EXPECT_THAT(job.Describe(), AllOf(HasSubstr("cannot assume the role"), HasSubstr("AccessDenied"),
                                    HasSubstr(TokenService::kRole)));
}

}  // namespace
}  // namespace hetero::testing
