// Jobs whose dataset lies in a bucket, or is a manifest there or on a web server, by the programs
// as a user runs them, against a real server.
#include "tests/integration/storage/bucket_job.h"

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

TEST_F(BucketJob, HasTheDigestOfTheSameFilesInAFolder) {
  for (const char* format : kFormats) {
    LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, format)), {"--input-only"});
    ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0) << format;
    LocalRun bucket(ManifestOf(absl::StrCat("s3://bucket/", format)), {"--input-only"},
                    Access(S3Server::kSecret));
    const ProgramResult result = bucket.Wait(kJobDeadline);
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
  ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0);
  for (const char* name : {"list.manifest", "train.csv"}) {
    LocalRun listed(ManifestOf(absl::StrCat("s3://bucket/lists/", name)), {"--input-only"},
                    Access(S3Server::kSecret));
    const ProgramResult result = listed.Wait(kJobDeadline);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(listed.report()["streamDigest"], folder.report()["streamDigest"]) << name;
    EXPECT_EQ(listed.report()["samplesConsumed"], 24) << name;
  }
}

TEST_F(BucketJob, OfAWebServerHasTheDigestOfTheFolder) {
  LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, "image_folder")), {"--input-only"});
  ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0);
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
  const ProgramResult result = web.Wait(kJobDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(web.report()["streamDigest"], folder.report()["streamDigest"]);
  EXPECT_EQ(web.report()["samplesConsumed"], 24);

  LocalRun strange(ManifestOf(server.url() + "/a%20set/train.csv"), {"--input-only"});
  const ProgramResult refused = strange.Wait(kJobDeadline);
  EXPECT_EQ(refused.exit_code, 2) << "nobody vouches for the server";
  EXPECT_THAT(refused.output, HasSubstr("train.csv"));
}

TEST_F(BucketJob, ItsManifestIsInspected) {
  testing::ProgramRun run("hetero-runtime", {"inspect", "s3://bucket/lists/train.csv"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kJobDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("  format   Manifest\n  samples  12\n  classes  3\n"));
  EXPECT_THAT(result.output, HasSubstr("    uri: s3://bucket/lists/train.csv\n"
                                       "    format: Manifest\n    samples: 12\n    classes: 3\n"));
}

// A folder of pictures beside them makes shards no ImageFolder.
TEST_F(BucketJob, ItsDatasetIsInspected) {
  testing::ProgramRun run("hetero-runtime", {"inspect", "s3://bucket/web_dataset", "--json"},
                          Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kJobDeadline);
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
  const ProgramResult packed = run.Wait(kJobDeadline);
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  EXPECT_THAT(packed.output, HasSubstr("uri: s3://bucket/packed"));
  LocalRun folder(ManifestOf(pictures), {"--input-only"});
  ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0);
  LocalRun bucket(ManifestOf("s3://bucket/packed"), {"--input-only"}, Access(S3Server::kSecret));
  const ProgramResult result = bucket.Wait(kJobDeadline);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(bucket.report()["streamDigest"], folder.report()["streamDigest"]);
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
  const ProgramResult result = run.Wait(kJobDeadline);
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
  ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0);
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
  const ProgramResult result = run.Wait(kJobDeadline);
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
  if (!testing::KeepsFolders()) fs::remove_all(output);
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
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("spec.output.uri"));
  EXPECT_THAT(result.output, HasSubstr("s3://other-bucket/results"));
  EXPECT_THAT(result.output, Not(HasSubstr("1 x head"))) << "the heading of a run";
  if (!testing::KeepsFolders()) fs::remove_all("hetero-output/" + name);
}

TEST_F(BucketJob, WhatIsWrongWithItsAccessIsNamedAndNoSecretIsShown) {
  LocalRun run(ManifestOf("s3://bucket/web_dataset"), {"--input-only"},
               Access(S3Server::kWrongSecret));
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 2) << "nothing was started";
  EXPECT_THAT(result.output, HasSubstr("s3://bucket/web_dataset"));
  EXPECT_THAT(result.output, HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(result.output, Not(HasSubstr(S3Server::kWrongSecret)));
}

TEST_F(BucketJob, ABucketThatIsNotThereIsNamed) {
  LocalRun run(ManifestOf("s3://other-bucket/web_dataset"), {"--input-only"},
               Access(S3Server::kSecret));
  const ProgramResult result = run.Wait(kJobDeadline);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("s3://other-bucket/web_dataset"));
}

}  // namespace
}  // namespace hetero::storage
