// Jobs whose dataset lies in a bucket, or is a manifest there or on a web server, by the programs
// as a user runs them, against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/copy.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;
using testing::LocalRun;
using ::testing::Not;
using testing::ProgramResult;

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDeadline(120);
constexpr char kDatasets[] = HETERO_SOURCE_DIR "/tests/golden/datasets/";

std::string ManifestOf(const std::string& uri) {
  return absl::StrCat(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: bucket}
spec:
  dataset: {uri: ")",
                      uri, R"("}
  pipeline: [{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: HorizontalFlip}, {op: Normalize}]
  training: {model: {name: mlp}, batchSizePerWorker: 4, epochs: 2, seed: 7}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
)");
}

// Of the folder of pictures, as an ImageFolder has them: "class/name", sorted.
std::vector<std::string> Pictures() {
  const fs::path root = absl::StrCat(kDatasets, "image_folder");
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(root).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ListOfPictures(const std::string& prefix) {
  nlohmann::json list = {{{"prefix", prefix}}};
  for (const std::string& name : Pictures()) list.push_back(name);
  return list.dump();
}

std::string TableOfPictures(const std::string& prefix) {
  std::string table = "path,label\r\n";
  for (const std::string& name : Pictures()) {
    absl::StrAppend(&table, prefix, name, ",", name.substr(0, name.find('/')), "\r\n");
  }
  return table;
}

// A web server with objects, to the extent that a store needs it; it asks for no credentials.
class WebServer {
 public:
  explicit WebServer(std::map<std::string, std::string> objects)
      : objects_(std::move(objects)),
        server_([this](const auto& request, auto& connection) { Answer(request, connection); }) {}

  std::string url() const { return server_.url(); }
  std::string ca_pem() const { return server_.ca_pem(); }

 private:
  void Answer(const kube::ScriptedServer::Request& request,
              kube::ScriptedServer::Connection& connection) const {
    const auto found = objects_.find(request.target);
    if (found == objects_.end()) return connection.Respond(404, "not here");
    const std::string& bytes = found->second;
    if (request.method == "HEAD") {
      return connection.Write(absl::StrCat(
          "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: ", bytes.size(), "\r\n\r\n"));
    }
    const auto range = request.headers.find("range");
    if (range == request.headers.end()) return connection.Respond(200, bytes, "ETag: \"v\"\r\n");
    size_t first = 0, last = 0;
    sscanf(range->second.c_str(), "bytes=%zu-%zu", &first, &last);
    connection.Respond(206, bytes.substr(first, last - first + 1),
                       absl::StrCat("ETag: \"v\"\r\nContent-Range: bytes ", first, "-", last, "/",
                                    bytes.size(), "\r\n"));
  }

  const std::map<std::string, std::string> objects_;
  kube::ScriptedServer server_;
};

class BucketJob : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new S3Server;
    server_->MakeBucket("bucket");
    for (const char* format : kFormats) {
      for (const auto& entry : fs::recursive_directory_iterator(absl::StrCat(kDatasets, format))) {
        if (!entry.is_regular_file()) continue;
        Upload(entry.path(), entry.path().lexically_relative(kDatasets).string());
      }
    }
    Upload(absl::StrCat(kDatasets, "image_folder/cat/0.png"), "web_dataset/preview/0.png");
    Put("lists/list.manifest", ListOfPictures("s3://bucket/image_folder/"));
    Put("lists/train.csv", TableOfPictures("s3://bucket/image_folder/"));
  }
  static void Upload(const fs::path& path, const std::string& name) {
    std::ifstream file(path, std::ios::binary);
    Put(name, {std::istreambuf_iterator<char>(file), {}});
  }
  static void Put(const std::string& name, const std::string& bytes) {
    ASSERT_FALSE(bytes.empty()) << name;
    const auto store = OpenWritableStore("s3://bucket", server_->Options());
    ASSERT_TRUE(store.ok()) << store.status();
    auto writer = (*store)->Create(name);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(
        (*writer)->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static std::string AllFilesOf(const std::string& folder) {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  static std::vector<std::string> Access(const std::string& secret) {
    return {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
            absl::StrCat("AWS_SECRET_ACCESS_KEY=", secret),
            absl::StrCat("AWS_REGION=", S3Server::kRegion),
            absl::StrCat("AWS_ENDPOINT_URL=", server_->endpoint())};
  }

  static constexpr const char* kFormats[] = {"web_dataset", "tf_record", "mds",
                                             "mds_zstd",    "parquet",   "image_folder"};
  static S3Server* server_;
};

S3Server* BucketJob::server_ = nullptr;

TEST_F(BucketJob, HasTheDigestOfTheSameFilesInAFolder) {
  for (const char* format : kFormats) {
    LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, format)), {"--input-only"});
    ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0) << format;
    LocalRun bucket(ManifestOf(absl::StrCat("s3://bucket/", format)), {"--input-only"},
                    Access(S3Server::kSecret));
    const ProgramResult result = bucket.Wait(kDeadline);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(bucket.report()["streamDigest"], folder.report()["streamDigest"]) << format;
    EXPECT_EQ(bucket.report()["samplesConsumed"], 24) << format;
    EXPECT_GT(bucket.report()["storage"]["requests"], 0) << format;
    EXPECT_FALSE(folder.report().contains("storage")) << format;
    EXPECT_THAT(result.output + AllFilesOf(bucket.output()), Not(HasSubstr(S3Server::kSecret)));
  }
}

// What SageMaker calls a ManifestFile, and a table; in the order of the folder.
TEST_F(BucketJob, HasTheDigestOfTheFolderThatItsManifestLists) {
  LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, "image_folder")), {"--input-only"});
  ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0);
  for (const char* name : {"list.manifest", "train.csv"}) {
    LocalRun listed(ManifestOf(absl::StrCat("s3://bucket/lists/", name)), {"--input-only"},
                    Access(S3Server::kSecret));
    const ProgramResult result = listed.Wait(kDeadline);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(listed.report()["streamDigest"], folder.report()["streamDigest"]) << name;
    EXPECT_EQ(listed.report()["samplesConsumed"], 24) << name;
  }
}

TEST_F(BucketJob, OfAWebServerHasTheDigestOfTheFolder) {
  LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, "image_folder")), {"--input-only"});
  ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0);
  std::map<std::string, std::string> objects = {{"/a%20set/train.csv", TableOfPictures("")}};
  for (const std::string& name : Pictures()) {
    objects["/a%20set/" + name] =
        testing::ReadFileOrDie(absl::StrCat(kDatasets, "image_folder/", name));
  }
  const WebServer server(std::move(objects));
  const testing::TemporaryFolder authority;
  const std::string ca = authority.Write("ca.pem", server.ca_pem());
  LocalRun web(ManifestOf(server.url() + "/a%20set/train.csv"), {"--input-only"},
               {"AWS_CA_BUNDLE=" + ca});
  const ProgramResult result = web.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(web.report()["streamDigest"], folder.report()["streamDigest"]);
  EXPECT_EQ(web.report()["samplesConsumed"], 24);

  LocalRun strange(ManifestOf(server.url() + "/a%20set/train.csv"), {"--input-only"});
  const ProgramResult refused = strange.Wait(kDeadline);
  EXPECT_EQ(refused.exit_code, 2) << "nobody vouches for the server";
  EXPECT_THAT(refused.output, HasSubstr("train.csv"));
}

TEST_F(BucketJob, ItsManifestIsInspected) {
  testing::ProgramRun run("hetero-runtime", {"inspect", "s3://bucket/lists/train.csv"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("  format   Manifest\n  samples  12\n  classes  3\n"));
  EXPECT_THAT(result.output, HasSubstr("    uri: s3://bucket/lists/train.csv\n"
                                       "    format: Manifest\n    samples: 12\n    classes: 3\n"));
}

// A folder of pictures beside them makes shards no ImageFolder.
TEST_F(BucketJob, ItsDatasetIsInspected) {
  testing::ProgramRun run("hetero-runtime", {"inspect", "s3://bucket/web_dataset", "--json"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json found = nlohmann::json::parse(result.output);
  EXPECT_EQ(found["format"], "WebDataset");
  EXPECT_EQ(found["shards"], 3);
  EXPECT_EQ(found["samples"], 12);
}

TEST_F(BucketJob, AFolderPackedIntoABucketHasItsDigest) {
  const std::string pictures = absl::StrCat("file://", kDatasets, "image_folder");
  testing::ProgramRun run("hetero-runtime", {"pack", pictures, "s3://bucket/packed"},
                          Access(S3Server::kSecret));
  const ProgramResult packed = run.Wait(kDeadline);
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  EXPECT_THAT(packed.output, HasSubstr("uri: s3://bucket/packed"));
  LocalRun folder(ManifestOf(pictures), {"--input-only"});
  ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0);
  LocalRun bucket(ManifestOf("s3://bucket/packed"), {"--input-only"}, Access(S3Server::kSecret));
  const ProgramResult result = bucket.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(bucket.report()["streamDigest"], folder.report()["streamDigest"]);
}

TEST_F(BucketJob, ItsIndexGivesTheSameDigestOrANamedError) {
  const auto index = [](const std::string& data) {
    testing::ProgramRun run("hetero-runtime", {"index", data, data + "/_index.hetero"},
                            Access(S3Server::kSecret));
    return run.Wait(kDeadline);
  };
  const auto job = [](const std::string& data) {
    LocalRun run(ManifestOf(data),
                 {"--input-only", "--set",
                  absl::StrCat("dataset.index={uri: ", data, "/_index.hetero, build: Never}")},
                 Access(S3Server::kSecret));
    ProgramResult result = run.Wait(kDeadline);
    return std::pair(result, result.exit_code == 0 ? run.report() : nlohmann::json());
  };
  for (const char* format : {"web_dataset", "tf_record"}) {
    const std::string data = absl::StrCat("s3://bucket/", format);
    const ProgramResult indexed = index(data);
    ASSERT_EQ(indexed.exit_code, 0) << indexed.output;
    EXPECT_THAT(indexed.output, HasSubstr("12 samples in "));
    EXPECT_THAT(indexed.output, HasSubstr(absl::StrCat("index: {uri: ", data, "/_index.hetero}")));
    LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, format)), {"--input-only"});
    ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0) << format;
    const auto [result, report] = job(data);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(report["streamDigest"], folder.report()["streamDigest"]) << format;
  }

  for (const char* shard : {"pictures-000000.tar", "pictures-000001.tar", "pictures-000002.tar"}) {
    Upload(absl::StrCat(kDatasets, "web_dataset/", shard), absl::StrCat("changing/", shard));
  }
  ASSERT_EQ(index("s3://bucket/changing").exit_code, 0);
  Upload(absl::StrCat(kDatasets, "web_dataset/pictures-000002.tar"),
         "changing/pictures-000001.tar");
  const std::string command =
      "hetero-runtime index s3://bucket/changing "
      "s3://bucket/changing/_index.hetero";
  ProgramResult stale = job("s3://bucket/changing").first;
  EXPECT_EQ(stale.exit_code, 2);
  EXPECT_THAT(stale.output, HasSubstr("pictures-000001.tar was changed or copied"));
  EXPECT_THAT(stale.output, HasSubstr(command));
  EXPECT_THAT(index("s3://bucket/changing").output, Not(HasSubstr("was there already")));
  EXPECT_THAT(index("s3://bucket/changing").output, HasSubstr("was there already"));
  EXPECT_EQ(job("s3://bucket/changing").first.exit_code, 0);

  std::string bytes;
  {
    const auto store = *OpenStore("s3://bucket/changing", server_->Options());
    std::vector<uint8_t> content;
    ASSERT_TRUE(store->ReadAll("_index.hetero", 1 << 20, &content).ok());
    bytes.assign(content.begin(), content.end());
  }
  bytes[bytes.size() - 20] ^= 1;
  Put("changing/_index.hetero", bytes);
  stale = job("s3://bucket/changing").first;
  EXPECT_EQ(stale.exit_code, 2);
  EXPECT_THAT(stale.output, HasSubstr("s3://bucket/changing/_index.hetero: the index is damaged"));
  EXPECT_THAT(stale.output, HasSubstr(command));
}

// A server that only the manifest names.
TEST_F(BucketJob, ItsStorageIsThatOfTheCommandsForDatasets) {
  const std::vector<std::string> keys = {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
                                         absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)};
  const std::string at_server =
      absl::StrCat(ManifestOf("s3://bucket/web_dataset"), "  storage: [{prefix: \"s3://bucket\", ",
                   "endpoint: \"", server_->endpoint(), "\", region: ", S3Server::kRegion,
                   ", secretRef: {name: ignored-here}}]\n");
  testing::TemporaryFolder folder;
  std::ofstream(folder / "job.yaml") << at_server;
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--storage", folder / "job.yaml"});
    testing::ProgramRun program("hetero-runtime", arguments, keys);
    return program.Wait(kDeadline);
  };
  const ProgramResult inspected = run({"inspect", "s3://bucket/web_dataset", "--json"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.output;
  EXPECT_THAT(inspected.output, HasSubstr("WebDataset"));
  const ProgramResult indexed =
      run({"index", "s3://bucket/tf_record", "s3://bucket/tf_record/_by_job.hetero"});
  ASSERT_EQ(indexed.exit_code, 0) << indexed.output;
  const ProgramResult packed =
      run({"pack", "s3://bucket/web_dataset", "s3://bucket/packed-by-job"});
  ASSERT_EQ(packed.exit_code, 0) << packed.output;

  LocalRun job(
      at_server,
      {"--input-only", "--set", "dataset.index={uri: s3://bucket/none.hetero, build: Never}"},
      keys);
  EXPECT_THAT(job.Wait(kDeadline).output,
              HasSubstr("hetero-runtime index s3://bucket/web_dataset s3://bucket/none.hetero "
                        "--storage JOB.yaml`"));
  std::ofstream(folder / "job.yaml") << "spec: {}\n";
  const ProgramResult refused = run({"inspect", "s3://bucket/web_dataset"});
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("job.yaml: "));
}

// Small pictures in 1,281 shards, read by the example's own pipeline.
TEST_F(BucketJob, TheExampleReadsAsManyShardsAsImageNetHas) {
  testing::TemporaryFolder folder;
  const ProgramResult drawn =
      testing::RunProgram("hetero-runtime", {"make-dataset", folder / "set", "--samples", "34000",
                                             "--validation-samples", "500", "--size", "24"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.output;
  for (const char* split : {"train", "val"}) {
    testing::ProgramRun run("hetero-runtime",
                            {"pack", (folder / "set/") + split,
                             absl::StrCat("s3://bucket/imagenet/", split), "--shard-size", "64KiB"},
                            Access(S3Server::kSecret));
    const ProgramResult packed = run.Wait(kDeadline);
    ASSERT_EQ(packed.exit_code, 0) << packed.output;
  }
  testing::ProgramRun inspect("hetero-runtime", {"inspect", "s3://bucket/imagenet/train", "--json"},
                              Access(S3Server::kSecret));
  const ProgramResult inspected = inspect.Wait(kDeadline);
  ASSERT_EQ(inspected.exit_code, 0) << inspected.output;
  EXPECT_GE(nlohmann::json::parse(inspected.output)["shards"], 1281);
  testing::ProgramRun index(
      "hetero-runtime",
      {"index", "s3://bucket/imagenet/train", "s3://bucket/imagenet/train/_index.hetero"},
      Access(S3Server::kSecret));
  const ProgramResult indexed = index.Wait(kDeadline);
  ASSERT_EQ(indexed.exit_code, 0) << indexed.output;
  const std::string example =
      testing::ReadFileOrDie(HETERO_SOURCE_DIR "/examples/imagenet-resnet50.yaml");
  const std::vector<std::string> changes = {
      "dataset.uri=s3://bucket/imagenet/train",
      "dataset.index.uri=s3://bucket/imagenet/train/_index.hetero",
      "dataset.index.build=Never",
      "dataset.classes=10",
      "dataset.validation.uri=s3://bucket/imagenet/val",
      "dataset.validation.classes=10",
      "training.batchSizePerWorker=32",
      "training.maxSteps=10"};
  std::vector<std::string> arguments = {"--input-only"};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  LocalRun run(example, arguments, Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report()["steps"], 10);
  RecordProperty("startupSeconds", std::to_string(run.report().value("startupSeconds", -1.0)));
}

// Without --output, which would say where everything goes.
TEST_F(BucketJob, ItsReportIsInTheBucketAndInTheFolderOfThisMachine) {
  const std::string name = absl::StrCat("bucket-output-", getpid());
  const std::string folder = "hetero-output/" + name;
  testing::TemporaryFolder files;
  std::string job = ManifestOf(absl::StrCat("file://", kDatasets, "image_folder"));
  job.replace(job.find("name: bucket"), 12, "name: " + name);
  job += "  output: {uri: \"s3://bucket/results\"}\n";
  testing::WriteFile(files / "job.yaml", job);
  testing::ProgramRun run("hetero-runtime", {"local", files / "job.yaml", "--input-only"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("results are in s3://bucket/results"));
  const auto store = *OpenStore("s3://bucket/results", server_->Options());
  for (const char* file : {"report.json", "report.html"}) {
    const std::string here = testing::ReadFileOrDie(folder + "/" + file);
    const absl::StatusOr<Object> object = store->Head(file);
    ASSERT_TRUE(object.ok()) << object.status();
    std::string there(static_cast<size_t>(object->size), '\0');
    ASSERT_TRUE(
        store->Read(*object, 0, {reinterpret_cast<uint8_t*>(there.data()), there.size()}).ok());
    EXPECT_TRUE(there == here) << file;
  }
  if (!testing::KeepsFolders()) fs::remove_all(folder);
}

// A list here, its pictures and the results on another server, and nothing of it in variables.
TEST_F(BucketJob, EachStoreIsReachedAsItsEntrySays) {
  LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, "image_folder")), {"--input-only"});
  ASSERT_EQ(folder.Wait(kDeadline).exit_code, 0);
  const S3Server other(/*tls=*/true);
  other.MakeBucket("bucket-2");
  const auto store = *OpenWritableStore("s3://bucket-2/set", other.Options());
  for (const std::string& name : Pictures()) {
    ASSERT_TRUE(CopyIntoStore(absl::StrCat(kDatasets, "image_folder"), name, *store).ok());
  }
  Put("lists/elsewhere.csv", TableOfPictures("s3://bucket-2/set/"));

  const std::string name = absl::StrCat("bucket-entries-", getpid());
  const std::string output = "hetero-output/" + name;
  testing::TemporaryFolder files;
  std::string job = ManifestOf("s3://bucket/lists/elsewhere.csv");
  job.replace(job.find("name: bucket"), 12, "name: " + name);
  const auto entry = [](const std::string& prefix, const std::string& endpoint) {
    return absl::StrCat("  - {prefix: \"", prefix, "\", endpoint: \"", endpoint,
                        "\", region: ", S3Server::kRegion, ", secretRef: {name: keys}");
  };
  absl::StrAppend(&job, "  output: {uri: \"s3://bucket-2/results\"}\n  storage:\n",
                  entry("s3://bucket", server_->endpoint()), "}\n",
                  entry("s3://bucket-2", other.endpoint()), ", caBundle: \"", other.ca_bundle(),
                  "\"}\n");
  testing::WriteFile(files / "job.yaml", job);
  testing::ProgramRun run("hetero-runtime", {"local", files / "job.yaml", "--input-only"},
                          {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
                           absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)});
  const ProgramResult result = run.Wait(kDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("ignored on one machine: spec.storage[0].secretRef, "
                                       "spec.storage[1].secretRef\n"));
  const std::string report = testing::ReadFileOrDie(output + "/report.json");
  EXPECT_EQ(nlohmann::json::parse(report)["streamDigest"], folder.report()["streamDigest"]);
  EXPECT_THAT(result.output + AllFilesOf(output), Not(HasSubstr(S3Server::kSecret)));
  std::vector<uint8_t> there;
  const auto results = *OpenStore("s3://bucket-2/results", other.Options());
  ASSERT_TRUE(results->ReadAll("report.json", 1 << 24, &there).ok());
  EXPECT_TRUE(std::string(there.begin(), there.end()) == report);
  fs::remove_all(output);
}

TEST_F(BucketJob, AnOutputThatCannotBeWrittenIsNamedBeforeAnythingStarts) {
  const std::string name = absl::StrCat("no-output-", getpid());
  testing::TemporaryFolder files;
  std::string job = ManifestOf(absl::StrCat("file://", kDatasets, "image_folder"));
  job.replace(job.find("name: bucket"), 12, "name: " + name);
  job += "  output: {uri: \"s3://other-bucket/results\"}\n";
  testing::WriteFile(files / "job.yaml", job);
  testing::ProgramRun run("hetero-runtime", {"local", files / "job.yaml", "--input-only"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("spec.output.uri"));
  EXPECT_THAT(result.output, HasSubstr("s3://other-bucket/results"));
  EXPECT_THAT(result.output, Not(HasSubstr("1 x head"))) << "the heading of a run";
  if (!testing::KeepsFolders()) fs::remove_all("hetero-output/" + name);
}

TEST_F(BucketJob, WhatIsWrongWithItsAccessIsNamedAndNoSecretIsShown) {
  LocalRun run(ManifestOf("s3://bucket/web_dataset"), {"--input-only"},
               Access(S3Server::kWrongSecret));
  const ProgramResult result = run.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 2) << "nothing was started";
  EXPECT_THAT(result.output, HasSubstr("s3://bucket/web_dataset"));
  EXPECT_THAT(result.output, HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(result.output, Not(HasSubstr(S3Server::kWrongSecret)));
}

TEST_F(BucketJob, ABucketThatIsNotThereIsNamed) {
  LocalRun run(ManifestOf("s3://other-bucket/web_dataset"), {"--input-only"},
               Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("s3://other-bucket/web_dataset"));
}

}  // namespace
}  // namespace hetero::storage
