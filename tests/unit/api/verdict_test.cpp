#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/job_status.h"
#include "nlohmann/json.hpp"
#include "tests/unit/api/test_status.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Verdict FullVerdict() {
  return {.succeeded = true,
          .message = "trained\n30 steps",
          .result = *FullStatus().result,
          .failure = *FullStatus().first_failure};
}

TEST(VerdictTest, EveryFieldSurvivesTheRoundTrip) {
  EXPECT_EQ(VerdictFromJson(VerdictToJson(FullVerdict())), FullVerdict());
  Verdict failed;
  failed.message = "gpu-0: killed by SIGKILL";
  EXPECT_EQ(VerdictFromJson(VerdictToJson(failed)), failed);
}

TEST(VerdictTest, IsOneLineOfJson) {
  const std::string text = VerdictToJson(FullVerdict());
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_EQ(nlohmann::json::parse(text)["state"], "Succeeded");
}

TEST(VerdictTest, AFinalNewlineDoesNotMatter) {
  EXPECT_EQ(VerdictFromJson(VerdictToJson(FullVerdict()) + "\n"), FullVerdict());
}

TEST(VerdictTest, LongWordsAreCutAndTheNumbersStay) {
  Verdict verdict = FullVerdict();
  verdict.message.assign(10'000, 'm');
  verdict.failure.message = std::string(5'000, '\0') + std::string(5'000, '\xFF');
  verdict.failure.reason.assign(5'000, '"');
  const std::string text = VerdictToJson(verdict);
  EXPECT_LE(text.size(), 3072u);
  EXPECT_GT(text.size(), 2900u) << "more was cut than needed";
  const std::optional<Verdict> read = VerdictFromJson(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->result, verdict.result);
  EXPECT_THAT(verdict.message, StartsWith(read->message));
}

TEST(VerdictTest, EvenEndlessAddressesFit) {
  Verdict verdict;
  verdict.succeeded = true;
  verdict.result.steps = 7;
  verdict.result.report_uri = "s3://bucket/" + std::string(1000, '\x01');
  verdict.result.checkpoint_uri = "s3://bucket/" + std::string(1000, '\x01');
  const std::optional<Verdict> read = VerdictFromJson(VerdictToJson(verdict));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->result.steps, 7);
}

TEST(VerdictTest, ATextThatIsNoVerdictIsNone) {
  for (const char* text :
       {"", " ", "null", "7", "[]", "{}", "Segmentation fault", "{\"state\": \"Succeeded\"",
        R"({"state": "Running"})", R"({"state": 1})", R"({"state": "Failed", "message": 3})",
        R"({"state": "Failed", "result": []})", R"({"state": "Failed", "result": {"steps": "x"}})",
        R"({"state": "Failed", "failure": {"time": "now"}})", "\xFF\xFE",
        R"({"state": "Failed"} trailing)"}) {
    EXPECT_EQ(VerdictFromJson(text), std::nullopt) << text;
  }
  EXPECT_TRUE(VerdictFromJson(R"({"state": "Failed", "result": null, "newer": []})").has_value());
}

// Whatever a container leaves behind: cut, torn and altered verdicts must not do harm.
TEST(VerdictTest, DamagedVerdictsDoNoHarm) {
  const std::string good = VerdictToJson(FullVerdict());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(VerdictFromJson(good.substr(0, i)), std::nullopt) << i;
    std::string altered = good;
    for (const char c : {'\0', '"', '{', ']', '9', '\xFF'}) {
      altered[i] = c;
      (void)VerdictFromJson(altered);
    }
  }
  EXPECT_EQ(VerdictFromJson(std::string(100'000, '[')), std::nullopt);
}

}  // namespace
}  // namespace hetero::api
