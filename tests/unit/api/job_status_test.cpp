#include "api/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"
#include "tests/unit/api/test_status.h"

namespace hetero::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  return std::string(StatusFromJson(text).status().message());
}

TEST(JobStatusTest, EveryFieldSurvivesTheRoundTrip) {
  const absl::StatusOr<JobStatus> read = StatusFromJson(StatusToJson(FullStatus()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, FullStatus());
}

TEST(JobStatusTest, NothingIsAnEmptyStatus) {
  for (const char* text : {"", "  \n", "null", "{}", R"({"conditions": null, "progress": null})"}) {
    const absl::StatusOr<JobStatus> read = StatusFromJson(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.status();
    EXPECT_EQ(*read, JobStatus()) << text;
  }
  const absl::StatusOr<JobStatus> read = StatusFromJson(StatusToJson({}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, JobStatus());
}

TEST(JobStatusTest, AbsentFieldsAreLeftOut) {
  EXPECT_EQ(json::parse(StatusToJson({})),
            json({{"observedGeneration", 0}, {"attempt", 0}, {"restarts", 0}}));
}

TEST(JobStatusTest, WrittenAsKubernetesWritesIt) {
  const json written = json::parse(StatusToJson(FullStatus()));
  EXPECT_EQ(written["startTime"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(written["conditions"][0]["type"], "Running");
  EXPECT_EQ(written["conditions"][0]["status"], "True");
  EXPECT_EQ(written["conditions"][1]["message"], "") << "message is required";
  EXPECT_EQ(written["result"]["reportURI"], "s3://bucket/report.json");
}

TEST(JobStatusTest, ANewerOperatorsFieldsAndConditionsAreSkipped) {
  const absl::StatusOr<JobStatus> read = StatusFromJson(R"({
      "attempt": 2, "mood": {"good": true},
      "conditions": [{"type": "Admired", "status": "Perhaps"},
                     {"type": "Failed", "status": "True", "reason": "RuleMatched", "colour": 1}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->attempt, 2);
  ASSERT_EQ(read->conditions.size(), 1u);
  EXPECT_TRUE(read->finished());
}

TEST(JobStatusTest, TheFieldOfTheWrongTypeIsNamed) {
  EXPECT_THAT(ErrorOf(R"({"attempt": "2"})"), HasSubstr("status.attempt: expected an integer"));
  EXPECT_THAT(ErrorOf(R"({"attempt": 2.5})"), HasSubstr("status.attempt"));
  EXPECT_THAT(ErrorOf(R"({"attempt": 3000000000})"), HasSubstr("status.attempt: integer out of"));
  EXPECT_THAT(ErrorOf(R"({"roleStatuses": [{"name": "a"}, {"desired": []}]})"),
              HasSubstr("status.roleStatuses[1].desired"));
  EXPECT_THAT(ErrorOf(R"({"startTime": "yesterday"})"), HasSubstr("status.startTime"));
  EXPECT_THAT(ErrorOf(R"({"conditions": [{"type": "Failed", "status": "true"}]})"),
              HasSubstr("status.conditions[0].status: unknown value \"true\""));
  EXPECT_THAT(ErrorOf(R"({"conditions": [7]})"), HasSubstr("status.conditions[0]"));
  EXPECT_THAT(ErrorOf(R"({"progress": [])"), HasSubstr("status"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("status: expected an object"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("not JSON"));
}

TEST(JobStatusTest, WhatIsTooLongForTheSchemaIsCutBetweenCharacters) {
  JobStatus status;
  status.first_failure = FirstFailure{.message = "x" + std::string(2100, '\xC3')};
  for (size_t i = 2; i < status.first_failure->message.size(); i += 2) {
    status.first_failure->message[i] = '\xA9';
  }
  status.first_failure->message += std::string(4000, 'y');
  status.uncounted.assign(2000, "uid");
  const json written = json::parse(StatusToJson(status));
  EXPECT_LE(written["firstFailure"]["message"].get<std::string>().size(), 4096u);
  EXPECT_EQ(written["uncounted"].size(), 1024u);

  status.first_failure->message = std::string(4095, 'a') + "\u00e9";
  EXPECT_EQ(json::parse(StatusToJson(status))["firstFailure"]["message"], std::string(4095, 'a'));
}

TEST(JobStatusTest, NoNumberAndNoTextMakesItUnreadable) {
  JobStatus status;
  status.progress =
      JobProgress{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN(), .eta_seconds = 5};
  status.result = JobResult{.loss = std::numeric_limits<double>::infinity(), .steps = 2};
  status.first_failure = FirstFailure{.message = std::string("log \xFF\xFE\0 end", 11)};
  const absl::StatusOr<JobStatus> read = StatusFromJson(StatusToJson(status));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->progress->loss, 0);
  EXPECT_FALSE(read->result->loss.has_value());
  EXPECT_THAT(read->first_failure->message, HasSubstr("log \uFFFD"));
}

TEST(JobStatusTest, ConditionsAreFoundByType) {
  const JobStatus status = FullStatus();
  ASSERT_NE(status.Find(ConditionType::kRunning), nullptr);
  EXPECT_EQ(status.Find(ConditionType::kRunning)->reason, "TrainingStarted");
  EXPECT_TRUE(status.Is(ConditionType::kRunning));
  EXPECT_FALSE(status.Is(ConditionType::kRegistered)) << "it is Unknown";
  EXPECT_EQ(status.Find(ConditionType::kFailed), nullptr);
  EXPECT_FALSE(status.finished());
}

TEST(JobStatusTest, NamesOfConditions) {
  for (int i = 0; i < kConditionTypes; ++i) {
    const auto type = static_cast<ConditionType>(i);
    EXPECT_EQ(ConditionTypeOf(NameOf(type)), type);
  }
  EXPECT_EQ(NameOf(ConditionStatus::kUnknown), "Unknown");
  EXPECT_EQ(ConditionTypeOf("running"), std::nullopt);
}

}  // namespace
}  // namespace hetero::api
