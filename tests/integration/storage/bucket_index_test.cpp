// Large shards in a bucket: their index, and the commands that work on datasets there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/storage/bucket_job.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;
using testing::LocalRun;
using ::testing::Not;
using testing::ProgramResult;

TEST_F(BucketJob, ItsIndexGivesTheSameDigestOrANamedError) {
  const auto index = [](const std::string& data) {
    testing::ProgramRun run("hetero-runtime", {"index", data, data + "/_index.hetero"},
                            Access(S3Server::kSecret));
    return run.Wait(kJobDeadline);
  };
  const auto job = [](const std::string& data) {
    LocalRun run(ManifestOf(data),
                 {"--input-only", "--set",
                  absl::StrCat("dataset.index={uri: ", data, "/_index.hetero, build: Never}")},
                 Access(S3Server::kSecret));
    ProgramResult result = run.Wait(kJobDeadline);
    return std::pair(result, result.exit_code == 0 ? run.report() : nlohmann::json());
  };
  for (const char* format : {"web_dataset", "tf_record"}) {
    const std::string data = absl::StrCat("s3://bucket/", format);
    const ProgramResult indexed = index(data);
    ASSERT_EQ(indexed.exit_code, 0) << indexed.output;
    EXPECT_THAT(indexed.output, HasSubstr("12 samples in "));
    EXPECT_THAT(indexed.output, HasSubstr(absl::StrCat("index: {uri: ", data, "/_index.hetero}")));
    LocalRun folder(ManifestOf(absl::StrCat("file://", kDatasets, format)), {"--input-only"});
    ASSERT_EQ(folder.Wait(kJobDeadline).exit_code, 0) << format;
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
    return program.Wait(kJobDeadline);
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
  EXPECT_THAT(job.Wait(kJobDeadline).output,
              HasSubstr("hetero-runtime index s3://bucket/web_dataset s3://bucket/none.hetero "
                        "--storage JOB.yaml`"));
  std::ofstream(folder / "job.yaml") << "spec: {}\n";
  const ProgramResult refused = run({"inspect", "s3://bucket/web_dataset"});
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("job.yaml: "));
}

// A name that ends as a shard's may be a folder's, and what a bucket held before it held CIFAR too
// is what it is.
TEST_F(BucketJob, OneShardAFolderOfSuchANameAndCifarBesideOthersAreTold) {
  const auto inspect = [](const std::string& uri) {
    testing::ProgramRun run("hetero-runtime", {"inspect", uri, "--json"},
                            Access(S3Server::kSecret));
    return run.Wait(kJobDeadline);
  };
  const auto expect = [&](const std::string& uri, const std::string& format, int shards) {
    const ProgramResult result = inspect(uri);
    ASSERT_EQ(result.exit_code, 0) << uri << ": " << result.output;
    const nlohmann::json found = nlohmann::json::parse(result.output);
    EXPECT_EQ(found["format"], format) << uri;
    EXPECT_EQ(found["shards"], shards) << uri;
  };
  const std::string golden = kDatasets;
  for (const char* part : {"train-00000-of-00002.parquet", "train-00001-of-00002.parquet"}) {
    Upload(golden + "parquet/" + part, absl::StrCat("exported/train.parquet/", part));
  }
  expect("s3://bucket/exported/train.parquet", "Parquet", 2);
  expect("s3://bucket/exported/train.parquet/", "Parquet", 2);
  expect("s3://bucket/exported/train.parquet/train-00001-of-00002.parquet", "Parquet", 1);
  expect("s3://bucket/web_dataset/pictures-000001.tar", "WebDataset", 1);
  for (const char* name : {"typo.parquet", "typo.rec", "typo.tfrecord", "typo.tar"}) {
    const ProgramResult result = inspect(absl::StrCat("s3://bucket/exported/", name));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr(absl::StrCat("s3://bucket/exported/", name,
                                                      ": there is no such object")));
  }
  for (const char* file : {"data_batch_1.bin", "test_batch.bin"}) {
    for (const char* place : {"cifar", "shards", "classes", "both"}) {
      Upload(golden + "cifar10/" + file, absl::StrCat(place, "/cifar-10-batches-bin/", file));
    }
  }
  Upload(golden + "web_dataset/pictures-000001.tar", "shards/pictures-000001.tar");
  Upload(golden + "image_folder/cat/0.png", "classes/cat/0.png");
  Put("both/cifar-100-binary/train.bin", std::string(3074, '\0'));
  expect("s3://bucket/cifar", "CIFAR10", 1);
  expect("s3://bucket/shards", "WebDataset", 1);
  EXPECT_THAT(inspect("s3://bucket/classes").output, HasSubstr("class folder"));
  EXPECT_THAT(inspect("s3://bucket/both").output, HasSubstr("has both, CIFAR-10 and CIFAR-100"));
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
    const ProgramResult packed = run.Wait(kJobDeadline);
    ASSERT_EQ(packed.exit_code, 0) << packed.output;
  }
  testing::ProgramRun inspect("hetero-runtime", {"inspect", "s3://bucket/imagenet/train", "--json"},
                              Access(S3Server::kSecret));
  const ProgramResult inspected = inspect.Wait(kJobDeadline);
  ASSERT_EQ(inspected.exit_code, 0) << inspected.output;
  EXPECT_GE(nlohmann::json::parse(inspected.output)["shards"], 1281);
  testing::ProgramRun index(
      "hetero-runtime",
      {"index", "s3://bucket/imagenet/train", "s3://bucket/imagenet/train/_index.hetero"},
      Access(S3Server::kSecret));
  const ProgramResult indexed = index.Wait(kJobDeadline);
  ASSERT_EQ(indexed.exit_code, 0) << indexed.output;
  const std::string example =
      testing::ReadFileOrDie(testing::SourceDir() + "/examples/imagenet-resnet50.yaml");
  const auto digest_of = [&](const std::vector<std::string>& changes) {
    std::vector<std::string> arguments = {"--input-only"};
    for (const char* change :
         {"dataset.classes=10", "dataset.validation.classes=10", "training.maxSteps=10"}) {
      arguments.insert(arguments.end(), {"--set", change});
    }
    for (const std::string& change : changes) {
      arguments.insert(arguments.end(), {"--set", change});
    }
    LocalRun run(example, arguments, Access(S3Server::kSecret));
    const ProgramResult result = run.Wait(kJobDeadline);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    if (result.exit_code != 0) return std::string();
    EXPECT_EQ(run.report()["steps"], 10);
    EXPECT_EQ(run.report()["samplesConsumed"], 320);
    RecordProperty("startupSeconds", std::to_string(run.report().value("startupSeconds", -1.0)));
    return run.report()["streamDigest"].get<std::string>();
  };
  const std::string folder_digest =
      digest_of({"dataset.uri=file://" + (folder / "set/train"), "dataset.format=ImageFolder",
                 "dataset.index=", "dataset.validation.uri=file://" + (folder / "set/val"),
                 "dataset.validation.format=ImageFolder", "training.batchSizePerWorker=32"});
  const std::vector<std::string> changes = {
      "dataset.uri=s3://bucket/imagenet/train",
      "dataset.index.uri=s3://bucket/imagenet/train/_index.hetero", "dataset.index.build=Never",
      "dataset.validation.uri=s3://bucket/imagenet/val"};
  for (const int ranks : {8, 1}) {
    std::vector<std::string> all = changes;
    all.push_back(absl::StrCat("roles.gpu.replicas=", ranks));
    all.push_back(absl::StrCat("training.batchSizePerWorker=", 32 / ranks));
    EXPECT_EQ(digest_of(all), folder_digest) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace hetero::storage
