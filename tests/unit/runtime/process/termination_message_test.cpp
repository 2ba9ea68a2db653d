#include "runtime/process/termination_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace hetero::process {
namespace {

v1::JobStatus Ended(v1::JobStatus::State state) {
  v1::JobStatus status;
  status.set_state(state);
  status.set_summary("two\nlines");
  status.mutable_result()->set_loss(0.25);
  status.mutable_result()->set_steps(30);
  status.mutable_result()->set_stream_digest("00ff");
  status.mutable_result()->set_report_uri("file:///out/report.json");
  return status;
}

TEST(TerminationMessageTest, TheOperatorReadsWhatTheHeadWrote) {
  const std::string path = std::filesystem::path(::testing::TempDir()) / "termination_message_test";
  std::ofstream(path) << std::string(5000, 'x') << " of an earlier message";
  const std::optional<api::Verdict> verdict = VerdictOf(Ended(v1::JobStatus::SUCCEEDED), "vit");
  ASSERT_TRUE(verdict.has_value());
  WriteTerminationMessage(path, *verdict);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  const std::optional<api::Verdict> read = api::VerdictFromJson(text.str());
  ASSERT_TRUE(read.has_value()) << text.str();
  EXPECT_EQ(*read, *verdict);
  EXPECT_TRUE(read->succeeded);
  EXPECT_EQ(read->message, "two\nlines");
  EXPECT_EQ(read->result.loss, 0.25);
  EXPECT_EQ(read->result.steps, 30);
  EXPECT_EQ(read->result.accuracy, std::nullopt);
  EXPECT_EQ(read->result.report_uri, "file:///out/report.json");
}

TEST(TerminationMessageTest, AFailureNamesThePodThatFailedFirst) {
  v1::JobStatus status = Ended(v1::JobStatus::FAILED);
  status.mutable_first_failure()->set_member("gpu-east-1.3");
  status.mutable_first_failure()->set_message("killed by SIGKILL");
  const std::optional<api::Verdict> verdict = VerdictOf(status, "vit");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_FALSE(verdict->succeeded);
  EXPECT_EQ(verdict->message, "gpu-east-1.3: killed by SIGKILL");
  EXPECT_EQ(verdict->failure.pod, "vit-gpu-east-1");
  EXPECT_EQ(verdict->failure.role, "gpu-east");

  status.mutable_first_failure()->set_member("head");
  EXPECT_EQ(VerdictOf(status, "vit")->failure.pod, "");
}

TEST(TerminationMessageTest, AJobThatWasStoppedHasNoVerdict) {
  EXPECT_EQ(VerdictOf(Ended(v1::JobStatus::STOPPED), "vit"), std::nullopt);
  EXPECT_EQ(VerdictOf(Ended(v1::JobStatus::RUNNING), "vit"), std::nullopt);
}

TEST(TerminationMessageTest, RankZeroKnowsTheNumbersToo) {
  v1::Progress progress;
  progress.set_step(30);
  progress.set_loss(0.5);
  progress.set_samples_consumed(600);
  progress.set_train_seconds(3);
  progress.set_digest_covers_job(true);
  v1::EvaluationResult evaluation;
  evaluation.set_accuracy(0.75);
  const api::Verdict verdict = VerdictOf(progress, evaluation);
  EXPECT_TRUE(verdict.succeeded);
  EXPECT_EQ(verdict.result.steps, 30);
  EXPECT_EQ(verdict.result.loss, 0.5);
  EXPECT_EQ(verdict.result.accuracy, 0.75);
  EXPECT_EQ(verdict.result.samples_per_second, 200);
  EXPECT_EQ(verdict.result.stream_digest.size(), 32u);
}

TEST(TerminationMessageTest, ARankWithAScriptKnowsItsOwnShareAlone) {
  v1::Progress progress;
  progress.set_step(30);
  progress.set_samples_consumed(600);
  progress.set_train_seconds(3);
  const api::Verdict verdict = VerdictOf(progress, std::nullopt);
  EXPECT_EQ(verdict.result.steps, 30);
  EXPECT_EQ(verdict.result.stream_digest, "");
  EXPECT_EQ(verdict.result.samples_per_second, std::nullopt);
  EXPECT_EQ(verdict.result.loss, std::nullopt) << "nobody has told it";
  progress.set_loss(0.5);
  EXPECT_EQ(VerdictOf(progress, std::nullopt).result.loss, 0.5);
}

TEST(TerminationMessageTest, NoPlaceForItDoesNoHarm) {
  WriteTerminationMessage("", {});
  WriteTerminationMessage("/nowhere/termination-log", {});
}

}  // namespace
}  // namespace hetero::process
