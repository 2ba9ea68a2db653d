// Data, checkpoints and results in a bucket that every node reaches, with keys from a Secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/storage/open_store.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
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
  const S3Server server(/*tls=*/false, S3Server::kKey, S3Server::kSecret,
                        GatewayOf(Nodes::Workers().front()));
  server.MakeBucket("bucket");
  TemporaryFolder folder;
  const std::string runtime = HETERO_BIN_DIR "/hetero-runtime";
  ASSERT_NO_FATAL_FAILURE(
      MustRun({runtime, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples",
               "768", "--validation-samples", "10", "--size", "32", folder / "pictures"},
              server));
  const std::string pictures = folder / "pictures/train";
  ASSERT_NO_FATAL_FAILURE(
      MustRun({runtime, "pack", pictures, "s3://bucket/set", "--shard-size", "200KB"}, server));
  const json local = PicturesJob(pictures);
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

}  // namespace
}  // namespace hetero::testing
