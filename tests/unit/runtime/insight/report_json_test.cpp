#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/insight/report.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/insight/sample_report.h"

namespace hetero::insight {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

TEST(ReportJson, EqualsTheGoldenFile) {
  std::ifstream file(testing::SourceDir() + "/tests/unit/runtime/insight/golden_report.json");
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(ToJson(FullReport()), golden.str());
}

TEST(ReportJson, WritesEveryFieldInTheDocumentedOrder) {
  const Json json = Json::parse(ToJson(FullReport()));
  EXPECT_THAT(
      Keys(json),
      ElementsAre("job", "state", "attempt", "attempts", "generations", "epochs", "steps",
                  "samplesConsumed", "duplicatesDropped", "ticketsReissued", "badSamples",
                  "skippedSteps", "badSampleList", "streamDigest", "seed", "startupSeconds",
                  "trainSeconds", "wallSeconds", "samplesPerSecond", "ceilingSamplesPerSecond",
                  "ceilingSource", "dataWaitPercent", "phaseSeconds", "waitSeconds", "timeLines",
                  "loss", "accuracy", "evaluations", "lossCurve", "workers", "cpuSecondsPerSample",
                  "faults", "disruptions", "stepsRedone", "costDollars", "costPerMillionSamples",
                  "verdict", "findings", "predictions", "placement", "resources", "batchLives",
                  "checkpointURI", "config", "versions"));
  EXPECT_THAT(Keys(json["phaseSeconds"]),
              ElementsAre("wait", "hostToDevice", "forward", "backward", "allReduce", "optimizer",
                          "checkpoint", "evaluation", "other"));
  EXPECT_THAT(Keys(json["waitSeconds"]),
              ElementsAre("noWorker", "workers", "transfer", "handover"));
  EXPECT_THAT(Keys(json["timeLines"][0]), ElementsAre("rank", "points"));
  EXPECT_THAT(Keys(json["timeLines"][0]["points"][0]),
              ElementsAre("step", "seconds", "phaseSeconds"));
  EXPECT_THAT(Keys(json["findings"][0]), ElementsAre("rule", "message", "remedy", "field", "member",
                                                     "seconds", "dollars", "since", "active"));
  EXPECT_THAT(Keys(json["predictions"][0]),
              ElementsAre("role", "replicas", "samplesPerSecond", "dollarsPer1000Steps"));
  EXPECT_THAT(Keys(json["placement"][0]),
              ElementsAre("op", "where", "reason", "workerSeconds", "trainerSeconds", "bytesOut"));
  EXPECT_THAT(Keys(json["placement"][1]),
              ElementsAre("op", "function", "where", "reason", "workerSeconds", "pythonSeconds",
                          "bytesIn", "bytesOut"));
  EXPECT_THAT(Keys(json["evaluations"][0]),
              ElementsAre("epoch", "step", "loss", "accuracy", "samples"));
  EXPECT_THAT(Keys(json["lossCurve"][0]), ElementsAre("step", "loss", "secondsPerStep"));
  EXPECT_THAT(Keys(json["workers"][0]),
              ElementsAre("name", "role", "index", "node", "batches", "samples", "bytes",
                          "cpuSeconds", "peakRssBytes", "restarts"));
  EXPECT_THAT(Keys(json["attempts"][0]), ElementsAre("attempt", "time", "seconds"));
  EXPECT_THAT(Keys(json["faults"][0]), ElementsAre("time", "what", "recoverySeconds"));
  EXPECT_THAT(Keys(json["badSampleList"][0]), ElementsAre("sampleId", "replacementId", "reason"));
}

TEST(ReportJson, EveryFieldIsDocumented) {
  std::ifstream file(testing::SourceDir() + "/docs/report.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const std::string& key : Keys(Json::parse(ToJson(FullReport())))) {
    EXPECT_THAT(page.str(), HasSubstr("`" + key)) << "docs/report.md does not mention " << key;
  }
}

TEST(ReportJson, WritesWhatStoresWereAskedForAndDocumentsIt) {
  Report report = FullReport();
  report.storage = ReportStorage{.requests = 12, .retries = 2, .bytes = 4096, .dollars = 0.5};
  report.workers[0].storage_requests = 7;
  report.workers[0].storage_bytes = 2048;
  report.workers[2].window_bytes = 1 << 20;
  report.workers[2].window_batches = 75;
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json["storage"],
            Json({{"requests", 12}, {"retries", 2}, {"bytes", 4096}, {"dollars", 0.5}}));
  EXPECT_EQ(json["workers"][0]["storageRequests"], 7);
  EXPECT_EQ(json["workers"][0]["storageBytes"], 2048);
  EXPECT_FALSE(json["workers"][1].contains("storageRequests"));
  EXPECT_EQ(json["workers"][2]["inputWindowBytes"], 1 << 20);
  EXPECT_EQ(json["workers"][2]["inputWindowBatches"], 75);
  EXPECT_FALSE(json["workers"][1].contains("inputWindowBytes"));
  EXPECT_FALSE(json["storage"].contains("orders"));
  report.storage->dollars.reset();
  report.storage->orders = {{.shuffle = "Full", .requests = 1000, .bytes = 9000, .dollars = 0.25},
                            {.shuffle = "Block of 64", .requests = 16, .bytes = {}, .dollars = {}}};
  EXPECT_EQ(Json::parse(ToJson(report))["storage"],
            Json::parse(R"({"requests": 12, "retries": 2, "bytes": 4096, "orders": [
              {"shuffle": "Full", "requests": 1000, "bytes": 9000, "dollars": 0.25},
              {"shuffle": "Block of 64", "requests": 16}]})"));
  std::ifstream file(testing::SourceDir() + "/docs/report.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const char* key : {"`storage`", "`orders[]`", "`storageRequests`", "`storageBytes`"}) {
    EXPECT_THAT(page.str(), HasSubstr(key));
  }
}

TEST(ReportJson, WritesWhatScriptsAddAndDocumentsIt) {
  Report report = FullReport();
  report.script_restarts = 0;
  report.reported = {{"learningRate", 0.1}, {"perplexity", 12.5}};
  report.stream_digest.reset();
  report.digest_problem = "the state knows no digest";
  report.evaluations[0].loss = std::numeric_limits<double>::quiet_NaN();
  report.evaluations[0].samples = 0;
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json["scriptRestarts"], 0) << "a measured zero";
  EXPECT_EQ(json["reported"].dump(), R"({"learningRate":0.1,"perplexity":12.5})");
  EXPECT_TRUE(json.contains("streamDigest"));
  EXPECT_TRUE(json["streamDigest"].is_null());
  EXPECT_EQ(json["digestProblem"], "the state knows no digest");
  EXPECT_THAT(Keys(json["evaluations"][0]), ElementsAre("epoch", "step", "accuracy"));
  std::ifstream file(testing::SourceDir() + "/docs/report.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const char* key : {"scriptRestarts", "reported", "digestProblem"}) {
    EXPECT_THAT(page.str(), HasSubstr(std::string("| `") + key)) << key;
  }
}

TEST(ReportJson, LeavesOutWhatDoesNotApply) {
  Report report;
  report.job = "empty";
  report.state = "Failed";
  report.message = "no worker";
  EXPECT_THAT(Keys(Json::parse(ToJson(report))),
              ElementsAre("job", "state", "message", "attempt", "attempts", "generations",
                          "duplicatesDropped", "ticketsReissued", "badSamples", "skippedSteps",
                          "badSampleList", "seed", "timeLines", "evaluations", "lossCurve",
                          "workers", "faults", "disruptions", "findings", "predictions",
                          "placement", "resources", "batchLives", "versions"));
}

TEST(ReportJson, LeavesOutAMemberThatIsNotApplicable) {
  Report report = FullReport();
  report.workers[0].node = "";
  report.workers[0].peak_rss_bytes = 0;
  report.workers[1].data_wait_percent = 41.5;
  const Json json = Json::parse(ToJson(report));
  EXPECT_FALSE(json["workers"][0].contains("node"));
  EXPECT_FALSE(json["workers"][0].contains("peakRssBytes"));
  EXPECT_FALSE(json["workers"][0].contains("dataWaitPercent"));
  EXPECT_EQ(json["workers"][1]["dataWaitPercent"], 41.5);
  EXPECT_FALSE(json["faults"][1].contains("recoverySeconds"));
}

TEST(ReportJson, LeavesOutNumbersThatAreNotFinite) {
  Report report = FullReport();
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.samples_per_second = std::numeric_limits<double>::infinity();
  report.loss_curve[0].loss = std::numeric_limits<double>::quiet_NaN();
  const std::string text = ToJson(report);
  EXPECT_THAT(text, Not(HasSubstr("null")));
  const Json json = Json::parse(text);
  EXPECT_FALSE(json.contains("loss"));
  EXPECT_FALSE(json.contains("samplesPerSecond"));
  EXPECT_THAT(Keys(json["lossCurve"][0]), ElementsAre("step", "secondsPerStep"));
}

TEST(ReportJson, KeepsAMeasuredZero) {
  Report report;
  report.accuracy = 0;
  report.data_wait_percent = 0;
  const Json json = Json::parse(ToJson(report));
  EXPECT_EQ(json["accuracy"], 0);
  EXPECT_EQ(json["dataWaitPercent"], 0);
}

TEST(ReportJson, RoundsToSixDigits) {
  Report report;
  report.accuracy = 1.0 / 3;
  EXPECT_THAT(ToJson(report), HasSubstr("\"accuracy\": 0.333333,"));
}

TEST(ReportJson, SurvivesTextThatIsNotUtf8) {
  Report report;
  report.message = "train/caf\xE9.jpg";
  EXPECT_EQ(Json::parse(ToJson(report))["message"], "train/caf\xEF\xBF\xBD.jpg");
}

TEST(ReportJson, KeepsAConfigThatIsNotJsonAsText) {
  Report report;
  report.config_json = "kind: HeteroTrainingJob";
  EXPECT_EQ(Json::parse(ToJson(report))["config"], "kind: HeteroTrainingJob");
}

}  // namespace
}  // namespace hetero::insight
