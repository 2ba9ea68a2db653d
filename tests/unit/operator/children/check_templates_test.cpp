#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// "path: reason" of every finding; the template is the head's, roles[0].
std::vector<std::string> Check(const std::string& pod_template) {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.roles[0].pod_template = pod_template;
  std::vector<std::string> lines;
  for (const TemplateError& error : CheckTemplates(job)) {
    lines.push_back(absl::StrCat(error.path, ": ", error.reason));
  }
  return lines;
}

std::vector<std::string> CheckRuntime(const std::string& fields) {
  return Check(absl::StrCat(R"({"spec": {"containers": [{"name": "runtime", )", fields, "}]}}"));
}

auto At(const std::string& place) {
  return ElementsAre(StartsWith("spec.roles[0].template" + place + ": "));
}

TEST(CheckTemplatesTest, UsualTemplatesAreFine) {
  EXPECT_THAT(Check(""), IsEmpty());
  EXPECT_THAT(Check("{}"), IsEmpty());
  EXPECT_THAT(Check(R"({"spec": {"containers": null, "nodeSelector": {"a": "b"}}})"), IsEmpty());
  EXPECT_THAT(CheckRuntime(R"("env": [{"name": "A"}], "volumeMounts": [{"mountPath": "/data"}],
                              "resources": {"limits": {"cpu": 1}})"),
              IsEmpty());
  EXPECT_THAT(Check(R"({"spec": {"restartPolicy": "Never", "containers": [{"name": "runtime"},
                        {"name": "sidecar", "ports": [{"containerPort": 8080}]}]}})"),
              IsEmpty());
}

TEST(CheckTemplatesTest, ContainersNeedExactlyOneRuntime) {
  EXPECT_THAT(Check(R"({"spec": {"containers": [{"name": "main"}]}})"), At(".spec.containers"));
  EXPECT_THAT(Check(R"({"spec": {"containers": [{"name": "runtime"}, {"name": "runtime"}]}})"),
              At(".spec.containers"));
  EXPECT_THAT(Check(R"({"spec": {"initContainers": [{"name": "runtime"}]}})"),
              At(".spec.initContainers[0].name"));
}

TEST(CheckTemplatesTest, ReservedNamesAreRefused) {
  EXPECT_THAT(CheckRuntime(R"("env": [{"name": "A"}, {"name": "HETERO_INDEX"}])"),
              At(".spec.containers[0].env[1].name"));
  EXPECT_THAT(CheckRuntime(R"("env": [{"name": "HETERO_LOG_LEVEL", "value": "debug"}])"),
              IsEmpty());
  EXPECT_THAT(CheckRuntime(R"("volumeMounts": [{"mountPath": "/etc/hetero"}])"),
              At(".spec.containers[0].volumeMounts[0].mountPath"));
  EXPECT_THAT(CheckRuntime(R"("volumeMounts": [{"mountPath": "/etc/hetero-tls/x"}])"),
              At(".spec.containers[0].volumeMounts[0].mountPath"));
  EXPECT_THAT(CheckRuntime(R"("volumeMounts": [{"mountPath": "/etc/heterodox"}])"), IsEmpty());
  EXPECT_THAT(Check(R"({"spec": {"volumes": [{"name": "hetero-tls"}]}})"),
              At(".spec.volumes[0].name"));
  EXPECT_THAT(Check(R"({"metadata": {"labels": {"training.hetero.dev/role": "x"}}})"),
              At(".metadata.labels[training.hetero.dev/role]"));
}

// A queue would hold single pods of a job that needs all of them.
TEST(CheckTemplatesTest, AQueueForTheRolesPodsIsRefused) {
  for (const char* part : {"labels", "annotations"}) {
    EXPECT_THAT(Check(absl::StrCat(R"({"metadata": {")", part,
                                   R"(": {"app": "x", "kueue.x-k8s.io/queue-name": "team"}}})")),
                ElementsAre(absl::StrCat("spec.roles[0].template.metadata.", part,
                                         "[kueue.x-k8s.io/queue-name]: it is the job's own label "
                                         "that names a queue: move it to the job's metadata")));
  }
  EXPECT_THAT(Check(R"({"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}})"),
              IsEmpty());
}

TEST(CheckTemplatesTest, RestartsAreTheOperators) {
  EXPECT_THAT(Check(R"({"spec": {"restartPolicy": "OnFailure"}})"), At(".spec.restartPolicy"));
}

TEST(CheckTemplatesTest, ASidecarMayNotTakeAPortOfTheRuntime) {
  EXPECT_THAT(Check(R"({"spec": {"containers": [{"name": "runtime"},
                        {"name": "s", "ports": [{"containerPort": 9090}]}]}})"),
              At(".spec.containers[1].ports[0].containerPort"));
}

TEST(CheckTemplatesTest, OtherShapesAreNamed) {
  EXPECT_THAT(Check("7"), At(""));
  EXPECT_THAT(Check(R"({"spec": []})"), At(".spec"));
  EXPECT_THAT(Check(R"({"spec": {"containers": {}}})"), At(".spec.containers"));
  EXPECT_THAT(Check(R"({"spec": {"containers": [7]}})"), At(".spec.containers[0]"));
  EXPECT_THAT(CheckRuntime(R"("env": {})"), At(".spec.containers[0].env"));
  EXPECT_THAT(CheckRuntime(R"("resources": [])"), At(".spec.containers[0].resources"));
}

TEST(CheckTemplatesTest, MessagesSayWhatToDo) {
  EXPECT_THAT(CheckRuntime(R"("env": [{"name": "HETERO_ROLE"}])"),
              ElementsAre(HasSubstr("begin with HETERO_ are the operator's own; rename it")));
}

TEST(CheckTemplatesTest, TheRoleIsNamedByItsPlace) {
  api::HeteroTrainingJob job = QuickstartJob();
  job.spec.roles[2].pod_template = R"({"spec": {"restartPolicy": "Always"}})";
  const std::vector<TemplateError> errors = CheckTemplates(job);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "spec.roles[2].template.spec.restartPolicy");
}

}  // namespace
}  // namespace hetero::children
