// CPU workers whose Python operators come with the user's own image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/children/golden.h"
#include "tests/unit/operator/children/restricted_profile.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using api::RoleType;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::HeteroTrainingJob PythonJob() {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.pipeline.insert(job.spec.pipeline.begin() + 1,
                           {.op = api::OperatorKind::kPython,
                            .module = "augment",
                            .function = "transform",
                            .outputs = api::OperatorOutputs{.image = {.shape = {28, 28, 1}}}});
  RoleOf(job, RoleType::kCpuWorker).pod_template =
      json({{"spec",
             {{"containers", json::array({{{"name", "runtime"}, {"image", "my/augment:1"}}})}}}})
          .dump();
  return job;
}

json PodOf(const api::HeteroTrainingJob& job, const api::Role& role) {
  return Pod(job, SlotOf(role), {});
}

TEST(PythonPod, OurProgramComesIntoTheUsersImage) {
  api::HeteroTrainingJob job = PythonJob();
  const json pod = PodOf(job, RoleOf(job, RoleType::kCpuWorker));
  EXPECT_EQ(RuntimeOf(pod)["image"], "my/augment:1");
  EXPECT_EQ(RuntimeOf(pod)["args"][0], "cpu-worker");
  EXPECT_THAT(RestrictedViolations(pod), IsEmpty());
  ExpectGolden("pod_cpu_python", pod);
}

TEST(PythonPod, OthersOfTheJobAreAsEver) {
  api::HeteroTrainingJob job = PythonJob();
  api::HeteroTrainingJob other = QuickstartJob();
  for (const RoleType type : {RoleType::kHead, RoleType::kGpuWorker}) {
    EXPECT_EQ(PodOf(job, RoleOf(job, type)), PodOf(other, RoleOf(other, type)));
  }
}

TEST(PythonPod, AnImageMustBeNamed) {
  api::HeteroTrainingJob job = PythonJob();
  EXPECT_THAT(CheckTemplates(job), IsEmpty());
  RoleOf(job, RoleType::kCpuWorker).pod_template.clear();
  std::vector<std::string> reasons;
  for (const TemplateError& error : CheckTemplates(job)) reasons.push_back(error.reason);
  EXPECT_THAT(reasons, ElementsAre(HasSubstr("must name the image")));
}

}  // namespace
}  // namespace hetero::children
