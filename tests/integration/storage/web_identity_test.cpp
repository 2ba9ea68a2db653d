// The pods of a job that reach their bucket by the token of their service account, without a
// cluster: STS and S3 are stand-ins, tokens are words. On nodes, with real tokens, e2e_test has
// the same.
#include "tests/integration/storage/web_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/jobs.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalPods;
using ::testing::Not;
using testing::ProgramResult;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kPatience(120);
const std::string kSet = testing::SourceDir() + "/tests/golden/datasets/web_dataset";

// "ACCOUNT.POD" is a token that is for AWS.
std::optional<TokenService::Owner> ReadWord(const std::string& token, const std::string& audience) {
  const size_t dot = token.find('.');
  if (dot == std::string::npos || audience != TokenService::kAudience) return std::nullopt;
  return TokenService::Owner{token.substr(0, dot), token.substr(dot + 1)};
}

class WebIdentityPods : public ::testing::Test {
 protected:
  std::vector<std::string> JobOf(const std::string& uri) const {
    return {absl::StrCat("dataset={uri: \"", uri, "\", format: WebDataset}"),
            "pipeline=[{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: Normalize}]",
            "training.batchSizePerWorker=3", "runPolicy.maxRestarts=0"};
  }
  std::vector<std::string> InBucket(const BucketForTemporaryKeys& bucket) const {
    std::vector<std::string> changes = JobOf("s3://bucket/set");
    changes.push_back(
        absl::StrCat("storage=[{prefix: \"s3://bucket\", endpoint: \"", bucket.url(), "\"}]"));
    changes.push_back("output.uri=s3://bucket/output");
    return changes;
  }
  // But for the token's file.
  static std::vector<std::string> Identity(const TokenService& service) {
    return {absl::StrCat("AWS_ROLE_ARN=", TokenService::kRole),
            absl::StrCat("AWS_REGION=", S3Server::kRegion),
            absl::StrCat("AWS_ENDPOINT_URL_STS=", service.url())};
  }
  // Each role's pods have a token of their own: "reader.ROLE".
  std::string RolesWithTokens() const {
    nlohmann::json roles = nlohmann::json::array(
        {{{"name", "head"}, {"type", "Head"}},
         {{"name", "cpu"}, {"type", "CPUWorker"}},
         {{"name", "gpu"}, {"type", "GPUWorker"}, {"replicas", 2}, {"gpusPerReplica", 0}}});
    for (nlohmann::json& role : roles) {
      const std::string name = role["name"];
      const std::string file = folder_.Write("token-" + name, "reader." + name);
      role["template"]["spec"]["containers"] = nlohmann::json::array(
          {{{"name", "runtime"},
            {"env", nlohmann::json::array(
                        {{{"name", "AWS_WEB_IDENTITY_TOKEN_FILE"}, {"value", file}}})}}});
    }
    return "roles=" + roles.dump();
  }
  static std::vector<ProgramResult> Run(LocalPods& pods) {
    pods.StartAll();
    std::vector<ProgramResult> all;
    for (const char* pod : {"gpu-0", "gpu-1", "cpu-0", "head-0"}) {
      all.push_back(pods.Run(pod).Wait(kPatience));
    }
    return all;
  }

  testing::TemporaryFolder folder_;
};

// Sooner than they said, in the middle of the reading.
TEST_F(WebIdentityPods, HaveTheDigestOfTheFolderAlthoughTheirKeysEnd) {
  LocalPods folder(testing::SmallJob(JobOf(absl::StrCat("file://", kSet))));
  for (const ProgramResult& result : Run(folder)) ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json expected =
      nlohmann::json::parse(testing::ReadFileOrDie(folder.output_folder() + "/report.json"));

  TokenService service({.account = "reader", .review = ReadWord, .end_after_uses = 12});
  BucketForTemporaryKeys bucket(service);
  bucket.Fill(kSet, "set");
  std::vector<std::string> changes = InBucket(bucket);
  changes.push_back(RolesWithTokens());
  LocalPods pods(testing::SmallJob(changes), Identity(service));
  for (const ProgramResult& result : Run(pods)) {
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output,
                AllOf(Not(HasSubstr(S3Server::kSecret)), Not(HasSubstr(S3Server::kSessionToken))));
  }
  EXPECT_THAT(service.pods(), UnorderedElementsAre("head", "cpu", "gpu"));
  EXPECT_TRUE(service.OutlivedItsKeys("cpu")) << service.Describe();
  const std::string text = bucket.Get("output/report.json");
  const nlohmann::json report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << text;
  EXPECT_EQ(report["streamDigest"], expected["streamDigest"]);
}

// A trainer has a store for the dataset, one to see that it can write, and one for what it leaves.
TEST_F(WebIdentityPods, AskOnceForAllStoresOfAProcess) {
  TokenService service({.account = "reader", .review = ReadWord});
  BucketForTemporaryKeys bucket(service);
  bucket.Fill(kSet, "set");
  std::vector<std::string> changes = InBucket(bucket);
  changes.push_back(RolesWithTokens());
  LocalPods pods(testing::SmallJob(changes), Identity(service));
  for (const ProgramResult& result : Run(pods)) EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(service.GrantsOf("cpu"), 1) << service.Describe();
  EXPECT_EQ(service.GrantsOf("gpu"), 2) << service.Describe();  // two pods
}

TEST_F(WebIdentityPods, OfAStrangerAreToldWhatStsSays) {
  TokenService service({.account = "reader", .review = ReadWord});
  BucketForTemporaryKeys bucket(service);
  bucket.Fill(kSet, "set");
  const std::pair<const char*, const char*> cases[] = {{"stranger.pod", "AccessDenied"},
                                                       {"gibberish", "InvalidIdentityToken"}};
  for (const auto& [token, code] : cases) {
    std::vector<std::string> environment = Identity(service);
    environment.push_back("AWS_WEB_IDENTITY_TOKEN_FILE=" + folder_.Write("token", token));
    LocalPods pods(testing::SmallJob(InBucket(bucket)), environment);
    pods.Start("head");
    pods.Start("cpu");
    const ProgramResult result = pods.Run("cpu-0").Wait(kPatience);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.output, AllOf(HasSubstr("cannot assume the role"), HasSubstr(code),
                                     HasSubstr(TokenService::kRole), Not(HasSubstr(token)),
                                     Not(ContainsRegex("tried 1 time[^\n]*tried 1 time"))));
  }
  EXPECT_THAT(service.pods(), IsEmpty());
}

}  // namespace
}  // namespace hetero::storage
