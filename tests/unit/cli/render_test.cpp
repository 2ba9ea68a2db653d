#include "cli/render.h"

#include <gtest/gtest.h>

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr char kNow[] = "2026-01-01T00:10:05Z";

base::WallTime At(const char* text) { return *api::ParseTime(text); }

JobView View(const char* object) {
  const auto view = ViewOf(json::parse(object));
  EXPECT_TRUE(view.ok()) << view.status().message();
  return *view;
}

constexpr char kRunning[] = R"({
  "metadata": {"name": "vit-blur", "namespace": "team", "generation": 2,
               "creationTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"runPolicy": {"suspend": false}, "output": {"uri": "s3://bucket/reports"}},
  "status": {
    "observedGeneration": 2, "attempt": 1, "restarts": 1, "registered": "3/4",
    "conditions": [
      {"type": "Running", "status": "True", "observedGeneration": 2, "reason": "TrainingStarted",
       "lastTransitionTime": "2026-01-01T00:01:00Z", "message": ""},
      {"type": "Registered", "status": "False", "observedGeneration": 2, "reason": "Unschedulable",
       "lastTransitionTime": "2026-01-01T00:10:00Z", "message": "cpu-1: 0/3 nodes fit"}],
    "roleStatuses": [
      {"name": "head", "desired": 1, "created": 1, "running": 1, "registered": 1},
      {"name": "cpu", "desired": 2, "created": 2, "running": 1, "registered": 1, "restarts": 1},
      {"name": "gpu", "desired": 1, "created": 1, "running": 1, "registered": 1}],
    "progress": {"epoch": 0, "step": 250, "totalSteps": 1000, "samplesPerSecond": 512.04,
                 "dataWaitPercent": 3.5, "loss": 6.908, "etaSeconds": 75,
                 "lastUpdateTime": "2026-01-01T00:10:04Z"}}})";

TEST(RenderTest, OneScreenOfARunningJob) {
  EXPECT_EQ(RenderStatus(View(kRunning), At(kNow), {.width = 80}),
            R"(team/vit-blur  Running  age 10m05s  attempt 1  restarts 1
Registered 3/4
Progress   [#######.......................] 25.0 %  step 250 of 1000
Rate       512.0 samples/s, waiting for data 3.5 %, loss 6.908, ends in 1m15s

  ROLE  DESIRED  CREATED  RUNNING  REGISTERED  FAILED  RESTARTS
  head  1        1        1        1           0       0
  cpu   2        2        1        1           0       1
  gpu   1        1        1        1           0       0

  CONDITION   STATUS  SINCE  REASON
  Running     True    9m05s  TrainingStarted
  Registered  False   5s     Unschedulable
  Registered: cpu-1: 0/3 nodes fit
)");
}

TEST(RenderTest, OneLineOfARunningJob) {
  EXPECT_EQ(RenderLine(View(kRunning), At(kNow)),
            "00:10:05 Running step 250/1000 512.0 samples/s registered 3/4 restarts 1: cpu-1: 0/3 "
            "nodes fit\n");
}

TEST(RenderTest, AJobThatNobodyHasSeenSaysSo) {
  const JobView view = View(
      R"({"metadata": {"name": "a", "namespace": "b", "creationTimestamp": "2026-01-01T00:10:00Z"}})");
  EXPECT_EQ(RenderStatus(view, At(kNow), {}),
            "b/a  Waiting  age 5s  attempt 0  restarts 0\n"
            "No operator has seen this job yet; is hetero-operator running and serving the "
            "namespace?\n");
}

TEST(RenderTest, FailureAndReport) {
  json object = json::parse(kRunning);
  object["status"]["startTime"] = "2026-01-01T00:00:00Z";
  object["status"]["completionTime"] = "2026-01-01T01:02:00Z";
  object["status"]["conditions"] = json::array({{{"type", "Failed"},
                                                 {"status", "True"},
                                                 {"reason", "MaxRestartsExceeded"},
                                                 {"message", "pod vit-blur-gpu-0 failed 4 times"},
                                                 {"lastTransitionTime", "2026-01-01T01:02:00Z"}}});
  object["status"]["firstFailure"] = {{"pod", "vit-blur-gpu-0"}, {"role", "gpu"},
                                      {"node", "node-1"},        {"exitCode", 137},
                                      {"reason", "OOMKilled"},   {"message", "line 1\nline 2"}};
  EXPECT_EQ(RenderReport(View(object.dump().c_str())),
            R"(team/vit-blur  Failed  took 1h02m  restarts 1
MaxRestartsExceeded: pod vit-blur-gpu-0 failed 4 times
First failure  pod vit-blur-gpu-0, role gpu, node node-1, exit code 137, OOMKilled
  line 1
  line 2
No report file was written to s3://bucket/reports
)");
}

TEST(RenderTest, ObjectsOfAnyShapeAreRead) {
  for (const char* object : {"null", "[]", "{}", R"({"metadata": 3, "spec": "x"})",
                             R"({"spec": {"runPolicy": []}, "metadata": {"name": 1}})"}) {
    const auto view = ViewOf(json::parse(object));
    ASSERT_TRUE(view.ok()) << object;
    EXPECT_EQ(view->state(), "Waiting");
    RenderStatus(*view, At(kNow), {.width = 1, .colour = true});
  }
  const auto view =
      ViewOf(json::parse(R"({"metadata": {"name": "a"}, "status": {"attempt": "x"}})"));
  EXPECT_FALSE(view.ok());
}

TEST(RenderTest, Durations) {
  EXPECT_EQ(FormatDuration(std::chrono::seconds(-1)), "0s");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(59)), "59s");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(60)), "1m00s");
  EXPECT_EQ(FormatDuration(std::chrono::hours(47)), "47h00m");
  EXPECT_EQ(FormatDuration(std::chrono::hours(49)), "2d01h");
}

}  // namespace
}  // namespace hetero::cli
