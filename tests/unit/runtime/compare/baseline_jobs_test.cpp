#include "runtime/compare/baseline_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/manifest.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

using ::testing::HasSubstr;

api::HeteroTrainingJob Job(const std::vector<std::string>& overrides = {}) {
  const api::ManifestResult read =
      api::ParseManifest(ReportOfSlowRun()["config"].dump(), overrides);
  EXPECT_TRUE(read.errors.empty()) << api::FormatErrors(read.errors);
  return read.job;
}

TEST(BaselineJobs, DifferInTheCpuRolesAlone) {
  const api::HeteroTrainingJob job = Job({"training.checkpoint={uri: 'file:///tmp/x'}"});
  const absl::StatusOr<BaselineJobs> jobs = BaselineJobsOf(job, 20);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->together.spec.training.max_steps, 20);
  EXPECT_FALSE(jobs->together.spec.training.checkpoint);
  ASSERT_EQ(jobs->alone.spec.roles.size(), 2u);
  api::HeteroTrainingJob put_back = jobs->alone;
  put_back.spec.roles.insert(put_back.spec.roles.begin() + 1, job.spec.roles[1]);
  EXPECT_EQ(api::ToJson(put_back), api::ToJson(jobs->together));
}

TEST(BaselineJobs, HaveNoMoreStepsThanTheJob) {
  EXPECT_EQ(BaselineJobsOf(Job({"training.maxSteps=7"}), 20)->alone.spec.training.max_steps, 7);
}

TEST(BaselineJobs, SayWhyThereIsNothingToLeaveOut) {
  EXPECT_THAT(std::string(BaselineJobsOf(Job({"roles.cpu.replicas=0"}), 5).status().message()),
              HasSubstr("spec.roles: the job has no CPU workers to leave out; give it"));
  const api::HeteroTrainingJob python =
      Job({"pipeline=[{op: Python, path: /src, module: a, function: b, outputs: {image: {shape: "
           "[8, 8, 3], type: Uint8}}}]"});
  EXPECT_THAT(std::string(BaselineJobsOf(python, 5).status().message()),
              HasSubstr("without its CPU workers the job is not valid:\nspec.pipeline[0]: Python"));
}

}  // namespace
}  // namespace hetero::compare
