// The operator's own pods, run as processes of this machine: their commands, environment, files and
// certificates are exactly those that a kubelet would be given.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "api/job_status.h"
#include "hetero/v1/status.grpc.pb.h"
#include "operator/reconcile/head_stream.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using testing::LocalPods;
using testing::ProgramResult;

constexpr std::chrono::seconds kDeadline(180);
constexpr size_t kLongestMessage = 3072;

std::string DigestOfLocalRun() {
  testing::LocalRun run(testing::SmallJobYaml());
  EXPECT_EQ(run.Wait(kDeadline).exit_code, 0);
  return run.report()["streamDigest"];
}

api::Verdict VerdictIn(const std::string& message) {
  EXPECT_LE(message.size(), kLongestMessage);
  const std::optional<api::Verdict> verdict = api::VerdictFromJson(message);
  EXPECT_TRUE(verdict.has_value()) << message;
  return verdict.value_or(api::Verdict());
}

// The status port as the operator dials it.
std::unique_ptr<v1::Status::Stub> DialStatus(const LocalPods& pods) {
  const bool tls = pods.job().spec.network.tls == api::Switch::kEnabled;
  const auto channel =
      reconcile::DialStatusPort({.address = absl::StrCat(pods.AddressOf("head-0"), ":7071"),
                                 .job_uid = pods.job().metadata.uid,
                                 .ca_pem = tls ? pods.trust().ca_pem : ""},
                                pods.operator_identity().leaf);
  EXPECT_TRUE(channel.ok()) << channel.status();
  return v1::Status::NewStub(*channel);
}

// Every status until the head has said the last one.
std::vector<v1::JobStatus> WatchToTheEnd(const LocalPods& pods) {
  const auto stub = DialStatus(pods);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const auto stream = stub->Watch(&context, v1::WatchRequest());
  std::vector<v1::JobStatus> heard;
  v1::JobStatus status;
  while (stream->Read(&status)) heard.push_back(status);
  const grpc::Status end = stream->Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  if (heard.empty()) heard.emplace_back();  // so that tests may look at the last one
  return heard;
}

class PodsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PodsTest, TrainToTheEndAndTellWhatTheLocalRunTells) {
  LocalPods pods(testing::SmallJob({absl::StrCat("network.tls=", GetParam())}));
  pods.StartAll();
  EXPECT_THAT(pods.Fetch("head-0", 7072, "/"), HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(pods.Fetch("head-0", 9090, "/metrics"), HasSubstr("hetero_members_desired"));
  const std::vector<v1::JobStatus> heard = WatchToTheEnd(pods);
  EXPECT_EQ(heard.back().state(), v1::JobStatus::SUCCEEDED);

  for (const char* pod : {"head-0", "cpu-0", "gpu-0", "gpu-1"}) {
    const ProgramResult result = pods.Run(pod).Wait(kDeadline);
    EXPECT_EQ(result.exit_code, 0) << pod << ":\n" << result.output;
  }
  const std::string digest = DigestOfLocalRun();
  EXPECT_EQ(heard.back().result().stream_digest(), digest);
  for (const char* pod : {"head-0", "gpu-0"}) {
    const api::Verdict verdict = VerdictIn(pods.TerminationMessage(pod));
    EXPECT_TRUE(verdict.succeeded) << pod;
    EXPECT_EQ(verdict.result.stream_digest, digest) << pod;
    EXPECT_EQ(verdict.result.steps, 16) << pod;
  }
  EXPECT_EQ(pods.TerminationMessage("cpu-0"), "");
  std::ifstream report(pods.output_folder() + "/report.json");
  EXPECT_EQ(nlohmann::json::parse(report)["streamDigest"], digest);
}

INSTANTIATE_TEST_SUITE_P(Tls, PodsTest, ::testing::Values("Enabled", "Disabled"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Pods, AreReadyWhenTheyTakePart) {
  LocalPods pods(testing::SmallJob());
  pods.Start("cpu", 0);
  EXPECT_EQ(pods.Fetch("cpu-0", 9090, "/healthz"), "ok\n");
  EXPECT_FALSE(pods.ready("cpu-0"));  // there is no head yet
  pods.Start("head");
  pods.Fetch("head-0", 9090, "/readyz");
  pods.Fetch("cpu-0", 9090, "/readyz");
  pods.Start("gpu", 0);
  pods.Fetch("gpu-0", 9090, "/healthz");
  EXPECT_FALSE(pods.ready("gpu-0"));  // the other trainer is missing
}

TEST(Pods, AHeadThatIsToldToGoLeavesTheJobToTheNext) {
  LocalPods pods(testing::SmallJob());
  pods.Start("head");
  pods.Start("cpu", 0);
  pods.Fetch("cpu-0", 9090, "/readyz");
  pods.Run("head-0").Signal(SIGTERM);
  const ProgramResult left = pods.Run("head-0").Wait(kDeadline);
  EXPECT_EQ(left.exit_code, 143) << left.output;
  EXPECT_EQ(pods.TerminationMessage("head-0"), "");
  EXPECT_TRUE(pods.Run("cpu-0").running());

  pods.Start("head");
  // Or the job may have come and gone before the status port is dialled a second time.
  pods.Fetch("head-0", 9090, "/readyz");
  pods.Start("gpu", 0);
  pods.Start("gpu", 1);
  EXPECT_EQ(WatchToTheEnd(pods).back().state(), v1::JobStatus::SUCCEEDED);
  const ProgramResult worker = pods.Run("cpu-0").Wait(kDeadline);
  EXPECT_EQ(worker.exit_code, 0) << worker.output;
}

TEST(Pods, AWorkerThatIsToldToGoEndsWithZero) {
  LocalPods pods(testing::SmallJob());
  pods.Start("cpu", 0);
  pods.Fetch("cpu-0", 9090, "/healthz");
  pods.Run("cpu-0").Signal(SIGTERM);
  const ProgramResult result = pods.Run("cpu-0").Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(Pods, AFailedJobSaysWhoAndWhy) {
  LocalPods pods(testing::SmallJob({"roles.gpu.replicas=1"}));
  pods.Start("head");
  pods.Start("cpu", 0);
  pods.Fetch("cpu-0", 9090, "/readyz");
  v1::ExitReport report;
  report.set_role("gpu");
  report.set_exit_code(1);
  report.set_message("cannot be scheduled");
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  v1::ExitReply reply;
  const grpc::Status reported = DialStatus(pods)->ReportExit(&context, report, &reply);
  EXPECT_TRUE(reported.ok()) << reported.error_message();
  const ProgramResult result = pods.Run("head-0").Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const api::Verdict verdict = VerdictIn(pods.TerminationMessage("head-0"));
  EXPECT_FALSE(verdict.succeeded);
  EXPECT_EQ(verdict.failure.pod, "small-gpu-0");
  EXPECT_THAT(verdict.failure.message, HasSubstr("cannot be scheduled"));
}

}  // namespace
}  // namespace hetero
