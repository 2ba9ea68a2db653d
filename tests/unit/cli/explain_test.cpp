#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cluster.h"
#include "operator/kube/api_error.h"

namespace hetero::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCall[] = "GET /apis/training.hetero.dev/v1alpha1/namespaces/team/jobs/a";

std::string Explained(int code, const std::string& reason, const std::string& message) {
  const nlohmann::json body = {
      {"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}};
  const absl::Status status =
      kube::ErrorOfResponse(kCall, {.status = code, .headers = {}, .body = body.dump()});
  const absl::Status explained = Explain(status, "get", {"team", "a"});
  EXPECT_EQ(explained.code(), status.code());
  return std::string(explained.message());
}

TEST(ExplainTest, SaysWhatIsMissing) {
  EXPECT_EQ(Explained(404, "NotFound", "heterotrainingjobs.training.hetero.dev \"a\" not found"),
            "there is no heterotrainingjob a in namespace team; kubectl hetero list -n team lists "
            "those there are, -n names another namespace");
  EXPECT_THAT(Explained(404, "NotFound", "the server could not find the requested resource"),
              HasSubstr("install the chart hetero-operator"));
  EXPECT_EQ(Explained(404, "NotFound", "namespaces \"team\" not found"),
            "there is no namespace team; -n names another one");
  const absl::Status page =
      kube::ErrorOfResponse(kCall, {.status = 404, .headers = {}, .body = "404 page not found\n"});
  EXPECT_THAT(std::string(Explain(page, "get", {"team", "a"}).message()),
              HasSubstr("the cluster knows no HeteroTrainingJobs (404 page not found"));
}

TEST(ExplainTest, KeepsTheServersWordsAndAddsARemedy) {
  const std::string text = Explained(403, "Forbidden", "User \"u\" cannot get: not today");
  EXPECT_THAT(text, HasSubstr("get heterotrainingjob team/a: User \"u\" cannot get: not today; "));
  EXPECT_THAT(text, HasSubstr("ask for the right to get heterotrainingjobs in namespace team"));
  EXPECT_THAT(text, Not(HasSubstr("/apis/"))) << "the path says nothing to a person";
  EXPECT_THAT(Explained(401, "Unauthorized", "Unauthorized"), HasSubstr("have expired"));
  EXPECT_EQ(Explained(422, "Invalid", "spec.roles: Required value"),
            "cannot get heterotrainingjob team/a: spec.roles: Required value");
}

TEST(ExplainTest, AServerThatCannotBeReachedIsNamed) {
  const absl::Status refused = absl::UnavailableError(
      std::string(kCall) + " at 10.0.0.1:6443: Failed to connect to any resolved endpoint");
  EXPECT_EQ(std::string(Explain(refused, "get", {"team", "a"}).message()),
            "cannot get heterotrainingjob team/a: the API server gives no answer: 10.0.0.1:6443: "
            "Failed to connect to any resolved endpoint; see whether kubectl cluster-info works, "
            "--kubeconfig and --context choose another cluster");
}

}  // namespace
}  // namespace hetero::cli
