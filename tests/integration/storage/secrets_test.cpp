// Secrets of jobs and commands at servers of which the real one is none: with temporary
// credentials, and those that repeat a request when they refuse it. Beside what is expected here,
// `without_secrets` searches what all of this leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/kube/scripted_server.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;
using testing::LocalRun;
using ::testing::Not;
using testing::ProgramResult;
using testing::ProgramRun;

constexpr std::chrono::seconds kPatience(120);

// Refuses every request with this code, as S3 does: the token, and what was signed, are in the
// reply.
kube::ScriptedServer::Script Refuse(int status, const std::string& code) {
  return [status, code](const auto& request, auto& connection) {
    const auto header = [&request](const char* name) {
      const auto found = request.headers.find(name);
      return found == request.headers.end() ? "" : found->second;
    };
    const std::string token = header("x-amz-security-token");
    EXPECT_EQ(token, S3Server::kSessionToken);
    connection.Respond(
        status, absl::StrCat("<Error><Code>", code, "</Code><Message>The token or the signature ",
                             "is not good.</Message><Token-0>", token,
                             "</Token-0><CanonicalRequest>", request.method,
                             "\n\nx-amz-security-token:", token, "\n", header("authorization"),
                             "</CanonicalRequest><RequestId>4442587FB7D0A2F9</RequestId></Error>"));
  };
}

// Has this object, in one bucket, for whoever shows the token.
kube::ScriptedServer::Script Serve(const std::string& target, const std::string& bytes) {
  return [target, bytes](const auto& request, auto& connection) {
    if (request.target != target) return connection.Respond(404, "");
    EXPECT_EQ(request.headers.at("x-amz-security-token"), S3Server::kSessionToken);
    if (request.method == "HEAD") {
      return connection.Write(absl::StrCat(
          "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: ", bytes.size(), "\r\n\r\n"));
    }
    const auto range = request.headers.find("range");
    if (range == request.headers.end()) {
      return connection.Respond(200, bytes, "ETag: \"v\"\r\n");
    }
    size_t first = 0, last = 0;
    sscanf(range->second.c_str(), "bytes=%zu-%zu", &first, &last);
    connection.Respond(206, bytes.substr(first, last - first + 1),
                       absl::StrCat("ETag: \"v\"\r\nContent-Range: bytes ", first, "-", last, "/",
                                    bytes.size(), "\r\n"));
  };
}

std::vector<std::string> AccessTo(const std::string& endpoint) {
  return {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
          absl::StrCat("AWS_SECRET_ACCESS_KEY=", S3Server::kSecret),
          absl::StrCat("AWS_SESSION_TOKEN=", S3Server::kSessionToken),
          absl::StrCat("AWS_REGION=", S3Server::kRegion),
          "AWS_ENDPOINT_URL=" + endpoint,
          "HETERO_LOG_LEVEL=debug"};
}

TEST(Secrets, ThatAServerRepeatsInARefusalAreNotShown) {
  const std::pair<int, const char*> refusals[] = {{400, "ExpiredToken"},
                                                  {400, "InvalidToken"},
                                                  {403, "SignatureDoesNotMatch"},
                                                  {403, "InvalidAccessKeyId"}};
  for (const auto& [status, code] : refusals) {
    const kube::ScriptedServer server(Refuse(status, code), {.tls = false});
    for (const char* command : {"inspect", "pack"}) {
      std::vector<std::string> arguments = {command, "s3://bucket/set"};
      const testing::TemporaryFolder shards;
      if (arguments[0] == "pack") arguments.push_back("file://" + shards.path());
      const ProgramResult result =
          ProgramRun("hetero-runtime", arguments, AccessTo(server.url())).Wait(kPatience);
      EXPECT_NE(result.exit_code, 0);
      EXPECT_THAT(result.output, HasSubstr("s3://bucket/set"));
      EXPECT_THAT(result.output, HasSubstr(code));
      for (const char* secret : {S3Server::kKey, S3Server::kSecret, S3Server::kSessionToken}) {
        EXPECT_THAT(result.output, Not(HasSubstr(secret))) << command << ", " << code;
      }
    }
  }
}

TEST(Secrets, OfTemporaryCredentialsAreNotShownByAJobThatLogsAllItCan) {
  const std::string pictures = testing::SourceDir() + "/tests/golden/datasets/image_folder/";
  const kube::ScriptedServer server(
      Serve("/bucket/0.png", testing::ReadFileOrDie(pictures + "cat/0.png")), {.tls = false});
  const testing::TemporaryFolder folder;
  const std::string list =
      folder.Write("train.csv", "path,label\r\ns3://bucket/0.png,0\r\ns3://bucket/0.png,1\r\n");
  LocalRun run(absl::StrCat(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: temporary}
spec:
  dataset: {uri: "file://)",
                            list, R"("}
  pipeline: [{op: Decode}, {op: Resize, size: {height: 8, width: 8}}, {op: Normalize}]
  training: {model: {name: mlp}, batchSizePerWorker: 2, epochs: 2, seed: 7}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 1}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
)"),
               {"--input-only"}, AccessTo(server.url()));
  const ProgramResult result = run.Wait(kPatience);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report()["samplesConsumed"], 4);
}

}  // namespace
}  // namespace hetero::storage
