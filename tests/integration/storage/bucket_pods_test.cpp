// The pods of a job whose results go to a bucket, and whose weights come from one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/jobs.h"

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LocalPods;
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

}  // namespace
}  // namespace hetero::storage
