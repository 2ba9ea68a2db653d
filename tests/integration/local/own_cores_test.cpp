// A sample that does harm where no CPU worker is: trainers read it on their own cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/local/white_picture.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunToTheEnd;
using testing::WhitePictureJob;
using testing::WhitePictureOutcome;

// With the operator of harmful_operator_plugin.cpp.
WhitePictureJob Harmful(WhitePictureJob job, const std::string& harm) {
  job.pipeline = "[{op: HorizontalFlip}, {op: Plugin, path: '" HETERO_HARMFUL_PLUGIN
                 "', name: Harmful, parameters: {harm: " +
                 harm + "}}, {op: Normalize}]";
  return job;
}

// The stream is that of a job whose operator knows the picture for a bad one.
void ExpectAsIfRefused(const WhitePictureJob& job, const WhitePictureOutcome& outcome) {
  ASSERT_EQ(outcome.result.exit_code, 0) << outcome.result.output;
  ASSERT_EQ(outcome.report["badSamples"], 1) << outcome.report["badSampleList"];
  const nlohmann::json& bad = outcome.report["badSampleList"][0];
  EXPECT_EQ(bad["sampleId"], job.white());
  EXPECT_THAT(bad["reason"].get<std::string>(), HasSubstr("ends the process that reads it"));
  EXPECT_THAT(bad["reason"].get<std::string>(), HasSubstr("signal 6"));
  const WhitePictureOutcome refused = RunToTheEnd(Harmful(job, "refuse"));
  ASSERT_EQ(refused.result.exit_code, 0) << refused.result.output;
  EXPECT_THAT(refused.result.output, Not(HasSubstr("is started again")));
  EXPECT_EQ(outcome.report["streamDigest"], refused.report["streamDigest"]);
  EXPECT_EQ(bad["replacementId"], refused.report["badSampleList"][0]["replacementId"]);
}

// Every process of the rank died of it, until no restart was left, and no report named a sample.
TEST(OwnCores, ASampleThatEndsTrainersCostsOneAndIsNamedAndReplaced) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const WhitePictureJob job{.ranks = ranks};
    const WhitePictureOutcome outcome = RunToTheEnd(Harmful(job, "abort"));
    ExpectAsIfRefused(job, outcome);
    EXPECT_THAT(outcome.result.output, HasSubstr("is started again (restart 1 of"));
    EXPECT_THAT(outcome.result.output, Not(HasSubstr("(restart 2 of")));
  }
}

// Without a checkpoint the new process begins at the first step, and the sample is further away
// than its window reaches.
TEST(OwnCores, ASampleFarFromWhereTheNewProcessBeginsIsFoundToo) {
  const WhitePictureJob job{.samples = 2400, .batch = 2, .slot = 2281};
  ExpectAsIfRefused(job, RunToTheEnd(Harmful(job, "abort")));
}

// No std::terminate: the job's error, and the sample's name.
TEST(OwnCores, AnExceptionThatLeavesAPluginFailsTheJobAndNamesTheSample) {
  const WhitePictureJob job;
  const WhitePictureOutcome outcome = RunToTheEnd(Harmful(job, "throw"));
  EXPECT_EQ(outcome.result.exit_code, 1) << outcome.result.output;
  EXPECT_EQ(outcome.report["state"], "Failed");
  EXPECT_THAT(outcome.result.output, Not(HasSubstr("is started again")));
  const std::string message = outcome.report["message"];
  EXPECT_THAT(message, HasSubstr("train-images-idx3-ubyte: record " + std::to_string(job.white())));
  EXPECT_THAT(message, HasSubstr("no picture may be white"));
}

}  // namespace
}  // namespace hetero
