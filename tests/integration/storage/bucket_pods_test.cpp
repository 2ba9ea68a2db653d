// The pods of a job whose results go to a bucket, and whose model's files come from one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/copy.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/jobs.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/train/script_file.h"

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LocalPods;
using ::testing::Not;
using testing::ProgramResult;

constexpr std::chrono::seconds kDeadline(120);

class BucketPods : public ::testing::Test {
 protected:
  BucketPods() { server_.MakeBucket("bucket"); }

  std::vector<std::string> Access() const {
    return {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
            absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret),
            absl::StrCat("AWS_REGION=", S3Server::kRegion),
            absl::StrCat("AWS_ENDPOINT_URL=", server_.endpoint())};
  }
  // What a job with these changes prints, pod by pod.
  std::vector<ProgramResult> Run(const std::vector<std::string>& changes) const {
    LocalPods pods(testing::SmallJob(changes), Access());
    pods.StartAll();
    std::vector<ProgramResult> results;
    for (const char* pod : {"gpu-0", "gpu-1", "cpu-0", "head-0"}) {
      results.push_back(pods.Run(pod).Wait(kDeadline));
    }
    return results;
  }
  void ExpectGood(const std::vector<ProgramResult>& results) {
    for (const ProgramResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.output;
  }
  std::string ReadOrFail(const std::string& name) const {
    const auto store = *OpenStore("s3://bucket", server_.Options());
    const absl::StatusOr<Object> object = store->Head(name);
    EXPECT_TRUE(object.ok()) << object.status();
    if (!object.ok()) return "";
    std::string bytes(static_cast<size_t>(object->size), '\0');
    const absl::Status read =
        store->Read(*object, 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    EXPECT_TRUE(read.ok()) << read;
    return bytes;
  }

  S3Server server_;
};

TEST_F(BucketPods, LeaveReportWeightsAndCurvesInIt) {
  ExpectGood(Run({"output.uri=s3://bucket/first"}));
  const nlohmann::json report = nlohmann::json::parse(ReadOrFail("first/report.json"));
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_EQ(report["steps"], 16);
  EXPECT_THAT(ReadOrFail("first/report.html"), HasSubstr("<html"));
  const std::string weights = ReadOrFail("first/model.safetensors");
  const auto store = *OpenStore("s3://bucket/first/tensorboard", server_.Options());
  EXPECT_FALSE(store->List("").value_or(std::vector<Object>()).empty());

  // With steps that are too small to change a number, they are the same at the end.
  ExpectGood(Run({"output.uri=s3://bucket/second",
                  "training.model.weights=s3://bucket/first/model.safetensors",
                  "training.optimizer.learningRate=1e-30", "training.optimizer.momentum=0"}));
  EXPECT_TRUE(ReadOrFail("second/model.safetensors") == weights);
}

TEST_F(BucketPods, AnOutputThatCannotBeWrittenEndsTheJobBeforeItTrains) {
  const std::vector<ProgramResult> results =
      Run({"output.uri=s3://other-bucket/out", "runPolicy.maxRestarts=0"});
  EXPECT_NE(results[0].exit_code, 0);
  EXPECT_THAT(results[0].output,
              AllOf(HasSubstr("spec.output.uri"), HasSubstr("s3://other-bucket/out"),
                    HasSubstr("NoSuchBucket")));
}

TEST_F(BucketPods, WeightsThatAreNotThereAreNamed) {
  const std::vector<ProgramResult> results =
      Run({"training.model.weights=s3://bucket/none/model.safetensors", "runPolicy.maxRestarts=0"});
  EXPECT_NE(results[0].exit_code, 0);
  EXPECT_THAT(results[0].output,
              AllOf(HasSubstr("spec.training.model.weights"),
                    HasSubstr("s3://bucket/none/model.safetensors"), HasSubstr("404")));
}

TEST_F(BucketPods, AModelOfTorchScriptIsTheOneOfTheSameFile) {
  const testing::TemporaryFolder folder;
  const std::string file = train::SaveScript(folder, R"(
def forward(self, images):
    x = torch.flatten(images, 1)
    return torch.add(torch.matmul(x, torch.t(self.weight)), self.frozen)
)",
                                             12 * 12 * 3);
  const auto models = *OpenWritableStore("s3://bucket/models", server_.Options());
  const absl::Status copied = CopyIntoStore(folder.path(), "net.pt", *models);
  ASSERT_TRUE(copied.ok()) << copied;
  const auto job = [](const std::string& model, const std::string& output, int classes) {
    return std::vector<std::string>{absl::StrCat("training.model={torchScript: \"", model, "\"}"),
                                    absl::StrCat("output.uri=s3://bucket/", output),
                                    absl::StrCat("dataset.classes=", classes),
                                    "runPolicy.maxRestarts=0"};
  };
  ExpectGood(Run(job(file, "of-file", 10)));
  ExpectGood(Run(job("s3://bucket/models/net.pt", "of-object", 10)));
  EXPECT_TRUE(ReadOrFail("of-object/model.safetensors") == ReadOrFail("of-file/model.safetensors"));

  const std::vector<ProgramResult> results = Run(job("s3://bucket/models/net.pt", "refused", 7));
  EXPECT_NE(results[0].exit_code, 0);
  EXPECT_THAT(
      results[0].output,
      HasSubstr("spec.training.model.torchScript: s3://bucket/models/net.pt: for 2 pictures"));
}

// Pictures from one owner, results to another, by two Secrets: no template names a variable.
class PodsOfTwoOwners : public ::testing::Test {
 protected:
  PodsOfTwoOwners() {
    data_.MakeBucket("data");
    results_.MakeBucket("results");
    const std::string shards = testing::SourceDir() + "/tests/golden/datasets/web_dataset";
    const auto store = *OpenWritableStore("s3://data/set", data_.Options());
    for (const auto& entry : std::filesystem::directory_iterator(shards)) {
      const absl::Status copied = CopyIntoStore(shards, entry.path().filename().string(), *store);
      EXPECT_TRUE(copied.ok()) << copied;
    }
  }

  static std::vector<std::string> JobOf(const std::string& uri) {
    return {absl::StrCat("dataset={uri: \"", uri, "\", format: WebDataset}"),
            "pipeline=[{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: Normalize}]",
            "training.batchSizePerWorker=3", "runPolicy.maxRestarts=0"};
  }
  std::string Storage() const {
    return absl::StrCat("storage=[{prefix: \"s3://data\", endpoint: \"", data_.endpoint(),
                        "\", region: ", S3Server::kRegion,
                        ", secretRef: {name: readers}}, {prefix: \"s3://results\", endpoint: \"",
                        results_.endpoint(), "\", region: ", S3Server::kRegion, ", caBundle: \"",
                        results_.ca_bundle(), "\", secretRef: {name: writers}}]");
  }
  std::vector<ProgramResult> Run(LocalPods& pods) {
    pods.StartAll();
    std::vector<ProgramResult> all;
    for (const char* pod : {"gpu-0", "gpu-1", "cpu-0", "head-0"}) {
      all.push_back(pods.Run(pod).Wait(kDeadline));
    }
    return all;
  }
  static void AddSecrets(LocalPods& pods) {
    pods.AddSecret("readers", {{"AWS_ACCESS_KEY_ID", S3Server::kKey},
                               {"AWS_SECRET_ACCESS_KEY", S3Server::kSecret}});
    pods.AddSecret("writers", {{"AWS_ACCESS_KEY_ID", S3Server::kOtherKey},
                               {"AWS_SECRET_ACCESS_KEY", S3Server::kOtherSecret}});
  }
  // The other one ends so, too.
  static auto HasNoSecret() { return Not(HasSubstr(S3Server::kSecret)); }

  S3Server data_;
  S3Server results_{/*tls=*/true, S3Server::kOtherKey, S3Server::kOtherSecret};
};

TEST_F(PodsOfTwoOwners, HaveTheDigestOfTheFolderAndLeaveTheirResults) {
  LocalPods folder(testing::SmallJob(
      JobOf("file://" + testing::SourceDir() + "/tests/golden/datasets/web_dataset")));
  for (const ProgramResult& result : Run(folder)) ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json expected =
      nlohmann::json::parse(testing::ReadFileOrDie(folder.output_folder() + "/report.json"));

  std::vector<std::string> changes = JobOf("s3://data/set");
  changes.push_back(Storage());
  changes.push_back("output.uri=s3://results/run");
  changes.push_back("training.checkpoint={uri: \"s3://results/checkpoints\", everySteps: 4}");
  LocalPods pods(testing::SmallJob(changes));
  AddSecrets(pods);
  for (const ProgramResult& result : Run(pods)) {
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasNoSecret());
  }
  const auto store = *OpenStore("s3://results", results_.Options());
  std::vector<uint8_t> report;
  ASSERT_TRUE(store->ReadAll("run/report.json", 1 << 24, &report).ok());
  const std::string text(report.begin(), report.end());
  EXPECT_EQ(nlohmann::json::parse(text)["streamDigest"], expected["streamDigest"]);
  EXPECT_THAT(text, HasNoSecret());
  EXPECT_TRUE(store->Head("run/model.safetensors").ok());
  EXPECT_FALSE(store->List("checkpoints/step-").value_or(std::vector<Object>()).empty());
}

TEST_F(PodsOfTwoOwners, AKeyThatIsMissingIsNamed) {
  std::vector<std::string> changes = JobOf("s3://data/set");
  changes.push_back(Storage());
  // Somebody's credentials that would be let in.
  LocalPods pods(testing::SmallJob(changes),
                 {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
                  absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret)});
  pods.AddSecret("readers", {{"AWS_ACCESS_KEY_ID", S3Server::kKey}});
  pods.Start("head");
  pods.Start("cpu");
  const ProgramResult result = pods.Run("cpu-0").Wait(kDeadline);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("spec.storage[0].secretRef"), HasSubstr("readers"),
                                   HasSubstr("no key AWS_SECRET_ACCESS_KEY"), HasNoSecret()));
}

}  // namespace
}  // namespace hetero::storage
