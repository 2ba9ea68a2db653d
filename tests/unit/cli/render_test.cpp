#include "cli/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/text.h"

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
       "lastTransitionTime": "2026-01-01T00:10:00Z", "message": "vit-blur-cpu-1: 0/3 nodes fit"}],
    "roleStatuses": [
      {"name": "head", "desired": 1, "created": 1, "running": 1, "registered": 1},
      {"name": "cpu", "desired": 2, "created": 2, "running": 1, "registered": 1, "restarts": 1},
      {"name": "gpu", "desired": 1, "created": 1, "running": 1, "registered": 1}],
    "progress": {"epoch": 0, "step": 250, "totalSteps": 1000, "samplesPerSecond": 512.04,
                 "dataWaitPercent": 3.5, "loss": 6.908, "etaSeconds": 75,
                 "lastUpdateTime": "2026-01-01T00:10:04Z"}}})";

TEST(RenderTest, OneScreenOfARunningJob) {
  EXPECT_EQ(RenderStatus(View(kRunning), At(kNow), {.width = 80}),
            R"(team/vit-blur  Running  age 10m05s  registered 3/4  restarts 1
Progress  [#######.......................] 25.0 %  step 250 of 1000
Rate      512.0 samples/s  waiting for data 3.5 %  loss 6.908  ends in 1m15s

Waiting for:
  vit-blur-cpu-1: 0/3 nodes fit

ROLE  DESIRED  CREATED  RUNNING  REGISTERED  FAILED  RESTARTS
head  1        1        1        1           0       0
cpu   2        2        1        1           0       1
gpu   1        1        1        1           0       0

CONDITION   STATUS  SINCE  REASON
Running     True    9m05s  TrainingStarted
Registered  False   5s     Unschedulable
)");
}

TEST(RenderTest, ANarrowTerminalLosesColumnsNotWords) {
  EXPECT_EQ(RenderStatus(View(kRunning), At(kNow), {.width = 40}),
            R"(team/vit-blur  Running  age 10m05s
  registered 3/4  restarts 1
Progress  [##........] 25.0 %
          step 250 of 1000
Rate      512.0 samples/s
          waiting for data 3.5 %
          loss 6.908  ends in 1m15s

Waiting for:
  vit-blur-cpu-1: 0/3 nodes fit

ROLE  DESIRED  RUNNING  REGISTERED
head  1        1        1
cpu   2        1        1
gpu   1        1        1

CONDITION   STATUS  REASON
Running     True    TrainingStarted
Registered  False   Unschedulable
)");
}

TEST(RenderTest, WhatToChangeIsSaidWithWhatItCosts) {
  json object = json::parse(kRunning);
  object["status"]["findings"] = {{{"rule", "SlowWorker"},
                                   {"member", "cpu-1"},
                                   {"message", "cpu-1 takes 3.0 times as long as the others"},
                                   {"remedy", "look at its node"},
                                   {"seconds", 750.5},
                                   {"dollars", 0.75},
                                   {"active", true}},
                                  {{"rule", "CheckpointStall"},
                                   {"message", "training stood still\nfor 3 s"},
                                   {"active", false}}};
  constexpr char kBlock[] = R"(
What to change:
  SlowWorker (cpu-1): cpu-1 takes 3.0 times as long as the others (cost 12m30s
    of training, $0.75)
    -> look at its node
  CheckpointStall: training stood still for 3 s (not any more)
)";
  EXPECT_THAT(RenderStatus(View(object.dump().c_str()), At(kNow), {.width = 80}),
              ::testing::HasSubstr(std::string(kBlock) + "\nROLE "));
  EXPECT_THAT(RenderReport(View(object.dump().c_str()), {.width = 80}),
              ::testing::HasSubstr(kBlock));
}

// Everything at once, and longer than it should be.
json Overfull() {
  json object = json::parse(kRunning);
  std::string missing;
  for (int i = 0; i < 5; ++i) {
    missing += "vit-blur-cpu-" + std::to_string(i) + ": ImagePullBackOff: Back-off pulling image " +
               std::string(250 + i, 'x') + "; still trying; ";
  }
  object["status"]["conditions"][1]["message"] = missing + "and 495 more";
  object["status"]["firstFailure"] = {
      {"pod", "vit-blur-gpu-0"},
      {"message", std::string(2000, 'y') + "\n" + std::string(900, '\n') + "the last word"}};
  object["status"]["result"] = {{"reportURI", "s3://" + std::string(300, 'z')}};
  object["status"]["findings"] = {{{"rule", "\x1b[2JA"},
                                   {"message", std::string(900, 'm')},
                                   {"remedy", std::string(900, 'r') + "\x1b[2J"},
                                   {"seconds", 1e300},
                                   {"dollars", 1e300}}};
  object["status"]["conditions"][0]["message"] = "\x1b[2Jgotcha " + std::string(3000, 'w');
  return object;
}

TEST(RenderTest, NothingIsWiderThanTheTerminal) {
  const JobView view = View(Overfull().dump().c_str());
  for (int width = 20; width < 120; ++width) {
    for (const bool colour : {false, true}) {
      const std::string text = RenderStatus(view, At(kNow), {.width = width, .colour = colour});
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = text.find('\n', begin);
        ASSERT_LE(Columns(text.substr(begin, end - begin)), static_cast<size_t>(width))
            << text.substr(begin, end - begin);
        begin = end + 1;
      }
      ASSERT_EQ(text.find("\x1b[2J"), std::string::npos) << "pods must not draw";
    }
  }
}

TEST(RenderTest, MissingPodsStandOnePerLineWithTheRestCounted) {
  const std::string text = RenderStatus(View(Overfull().dump().c_str()), At(kNow), {.width = 60});
  EXPECT_THAT(text, ::testing::HasSubstr("\n  vit-blur-cpu-0: ImagePullBackOff: Back-off pulling"));
  EXPECT_THAT(text, ::testing::HasSubstr("\n  vit-blur-cpu-4: ImagePullBackOff: Back-off pulling"));
  EXPECT_THAT(text, ::testing::HasSubstr("\n  +495 more\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("the last word")) << "the end of last words tells most";
  const std::string whole = RenderStatus(View(Overfull().dump().c_str()), At(kNow), {.width = 0});
  EXPECT_THAT(whole, ::testing::HasSubstr(std::string(3000, 'w'))) << "not cut without a terminal";
}

TEST(RenderTest, PodsThatMissTheSameStandTogether) {
  json object = json::parse(kRunning);
  object["status"]["conditions"][1]["message"] =
      "vit-blur-cpu-0: Unschedulable: 0/3 nodes; vit-blur-gpu-0: not created yet; "
      "vit-blur-cpu-1: Unschedulable: 0/3 nodes; and 7 more";
  EXPECT_THAT(RenderStatus(View(object.dump().c_str()), At(kNow), {.width = 80}),
              ::testing::HasSubstr("\nWaiting for:\n"
                                   "  vit-blur-cpu-0, vit-blur-cpu-1: Unschedulable: 0/3 nodes\n"
                                   "  vit-blur-gpu-0: not created yet\n"
                                   "  +7 more\n"));
}

TEST(RenderTest, WhatHasNotBegunHasNoProgress) {
  json object = json::parse(kRunning);
  object["status"]["progress"]["step"] = 0;
  EXPECT_EQ(RenderStatus(View(object.dump().c_str()), At(kNow), {}).find("Progress"),
            std::string::npos);
  object["status"]["progress"]["step"] = 5;
  object["status"]["conditions"][0]["status"] = "False";
  const std::string restarting = RenderStatus(View(object.dump().c_str()), At(kNow), {});
  EXPECT_THAT(restarting, ::testing::HasSubstr("step 5 of 1000"));
  EXPECT_EQ(restarting.find("Rate"), std::string::npos) << "nothing is trained now";
}

TEST(RenderTest, ColourOnlyOnTheState) {
  const JobView view = View(kRunning);
  EXPECT_EQ(RenderStatus(view, At(kNow), {.width = 80}).find('\x1b'), std::string::npos);
  EXPECT_THAT(RenderStatus(view, At(kNow), {.width = 80, .colour = true}),
              ::testing::HasSubstr("\x1b[1;32mRunning\x1b[0m"));
}

TEST(RenderTest, OneLineOfARunningJob) {
  EXPECT_EQ(RenderLine(View(kRunning), At(kNow)),
            "2026-01-01T00:10:05Z Running step 250/1000 512.0 samples/s registered 3/4 restarts 1: "
            "Unschedulable: vit-blur-cpu-1: 0/3 nodes fit\n");
}

TEST(RenderTest, OneLineSaysWhyNoPodCanBeCreated) {
  json object = json::parse(kRunning);
  object["status"]["conditions"] = json::array({{{"type", "PodsCreated"},
                                                 {"status", "False"},
                                                 {"reason", "QuotaExceeded"},
                                                 {"message", "exceeded quota: few"},
                                                 {"lastTransitionTime", "2026-01-01T00:01:00Z"}}});
  object["status"].erase("progress");
  EXPECT_EQ(RenderLine(View(object.dump().c_str()), At(kNow)),
            "2026-01-01T00:10:05Z Waiting registered 3/4 restarts 1: QuotaExceeded: exceeded "
            "quota: few\n");
}

TEST(RenderTest, AQueuedJobSaysWhereItStands) {
  json object = json::parse(kRunning);
  object["status"]["conditions"] = json::array({{{"type", "Queued"},
                                                 {"status", "True"},
                                                 {"reason", "Pending"},
                                                 {"message", "2 more needed"},
                                                 {"lastTransitionTime", "2026-01-01T00:01:00Z"}}});
  object["status"].erase("progress");
  JobView view = View(object.dump().c_str());
  EXPECT_THAT(RenderStatus(view, At(kNow), {.width = 80}),
              ::testing::HasSubstr("\nQueued, Pending:\n  2 more needed\n"));
  view.place = "3rd of 7 in team";
  EXPECT_THAT(RenderStatus(view, At(kNow), {.width = 80}),
              ::testing::HasSubstr("\nQueued, Pending, 3rd of 7 in team:\n  2 more needed\n"));
  EXPECT_THAT(RenderLine(view, At(kNow)),
              ::testing::HasSubstr(" Queued 3rd of 7 in team registered 3/4"));
}

TEST(RenderTest, OldProgressSaysHowOldItIs) {
  json object = json::parse(kRunning);
  object["status"]["progress"]["lastUpdateTime"] = "2026-01-01T00:08:00Z";
  EXPECT_THAT(RenderStatus(View(object.dump().c_str()), At(kNow), {.width = 100}),
              ::testing::HasSubstr("ends in 1m15s  (2m05s ago)\n"));
}

TEST(RenderTest, AJobThatNobodyHasSeenSaysSo) {
  const JobView view = View(
      R"({"metadata": {"name": "a", "namespace": "b", "creationTimestamp": "2026-01-01T00:10:00Z"}})");
  EXPECT_EQ(RenderStatus(view, At(kNow), {.width = 100}),
            "b/a  Waiting  age 5s  restarts 0\n"
            "No operator has seen this job yet; is hetero-operator running and serving the "
            "namespace?\n");
  EXPECT_EQ(RenderStatus(view, At("2026-01-01T00:10:01Z"), {.width = 100}),
            "b/a  Waiting  age 1s  restarts 0\n")
      << "it has hardly been created";
}

TEST(RenderTest, WhatElseThereIsToKnow) {
  json object = json::parse(kRunning);
  const auto shown = [&object] {
    return RenderStatus(View(object.dump().c_str()), At(kNow), {.width = 100});
  };
  object["metadata"]["generation"] = 3;
  EXPECT_THAT(shown(), ::testing::HasSubstr("\nThe operator has not seen the last change yet\n"));
  object["metadata"]["generation"] = 2;
  object["spec"]["runPolicy"]["suspend"] = true;
  EXPECT_THAT(shown(), ::testing::HasSubstr("\nSuspended: kubectl hetero resume vit-blur lets"));
  object["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(shown(), ::testing::HasSubstr("\nManaged by kueue.x-k8s.io/multikueue: "));
  object["spec"]["runPolicy"].erase("managedBy");
  object["spec"]["managedBy"] = "example.com/other";
  EXPECT_THAT(shown(), ::testing::HasSubstr("\nManaged by example.com/other: "));
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:05Z";
  EXPECT_THAT(shown(), ::testing::HasSubstr("\nIt is being deleted\n"));
}

json Failed() {
  json object = json::parse(kRunning);
  object["status"]["startTime"] = "2026-01-01T00:00:00Z";
  object["status"]["completionTime"] = "2026-01-01T01:02:00Z";
  object["status"]["conditions"] = json::array({{{"type", "Failed"},
                                                 {"status", "True"},
                                                 {"reason", "MaxRestartsExceeded"},
                                                 {"message", "pod vit-blur-gpu-0 failed 4 times"},
                                                 {"lastTransitionTime", "2026-01-01T01:02:00Z"}},
                                                {{"type", "Registered"},
                                                 {"status", "False"},
                                                 {"reason", "WaitingForPods"},
                                                 {"message", "vit-blur-gpu-0: not created yet"},
                                                 {"lastTransitionTime", "2026-01-01T01:02:00Z"}}});
  object["status"]["firstFailure"] = {{"pod", "vit-blur-gpu-0"}, {"role", "gpu"},
                                      {"node", "node-1"},        {"exitCode", 137},
                                      {"reason", "OOMKilled"},   {"message", "line 1\nline 2"}};
  return object;
}

TEST(RenderTest, AFinishedJobWaitsForNobody) {
  const std::string text = RenderStatus(View(Failed().dump().c_str()), At(kNow), {.width = 80});
  EXPECT_THAT(text, ::testing::StartsWith("team/vit-blur  Failed  took 1h02m  "));
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "\nFailed, MaxRestartsExceeded:\n  pod vit-blur-gpu-0 failed 4 times\n"));
  EXPECT_EQ(text.find("Waiting for"), std::string::npos) << text;
  EXPECT_EQ(text.find("Rate"), std::string::npos) << text;
}

// A resume sets status.startTime anew: a job of an hour was said to have taken 15 s.
TEST(RenderTest, AResumedJobTookAllItsTime) {
  json object = Failed();
  object["status"]["startTime"] = "2026-01-01T01:01:45Z";
  object["status"]["attempt"] = 2;
  EXPECT_THAT(RenderReport(View(object.dump().c_str()), {.width = 0}),
              ::testing::StartsWith("team/vit-blur  Failed  took 1h02m  attempt 2  restarts 1\n"));
  EXPECT_THAT(RenderStatus(View(object.dump().c_str()), At(kNow), {.width = 0}),
              ::testing::StartsWith("team/vit-blur  Failed  took 1h02m  "));
}

TEST(RenderTest, FailureAndReport) {
  EXPECT_EQ(RenderReport(View(Failed().dump().c_str()), {.width = 0}),
            R"(team/vit-blur  Failed  took 1h02m  restarts 1
Failed, MaxRestartsExceeded:
  pod vit-blur-gpu-0 failed 4 times
First failure  pod vit-blur-gpu-0  role gpu  node node-1  exit code 137  OOMKilled
  line 1
  line 2
No report file was written to s3://bucket/reports
)");
}

TEST(RenderTest, ReportSaysWhereItsFileIs) {
  json object = Failed();
  object["status"].erase("firstFailure");
  object["status"]["conditions"] = json::array({{{"type", "Succeeded"},
                                                 {"status", "True"},
                                                 {"reason", "TrainingFinished"},
                                                 {"lastTransitionTime", "2026-01-01T01:02:00Z"}}});
  object["status"]["result"] = {{"steps", 1000},
                                {"loss", 0.25},
                                {"accuracy", 0.885},
                                {"costDollars", 1.5},
                                {"reportURI", "file:///out/report.json"}};
  EXPECT_EQ(RenderReport(View(object.dump().c_str()), {.width = 80}),
            R"(team/vit-blur  Succeeded  took 1h02m  restarts 1
Result
  steps     1000
  loss      0.25
  accuracy  0.8850
  cost      $1.50
  report    file:///out/report.json
The report is on a volume of the pods; kubectl hetero report vit-blur --save
  FOLDER fetches it
)");
}

// The head's words on success are a small table.
TEST(RenderTest, ASummaryKeepsItsLines) {
  json object = Failed();
  object["status"].erase("firstFailure");
  object["status"]["conditions"] = json::array(
      {{{"type", "Succeeded"},
        {"status", "True"},
        {"reason", "TrainingFinished"},
        {"message", "vit-blur: Succeeded after 6 s\n  steps       200\n  loss        0.02\n"},
        {"lastTransitionTime", "2026-01-01T01:02:00Z"}}});
  const std::string lines =
      "  vit-blur: Succeeded after 6 s\n    steps       200\n    loss        0.02\n";
  EXPECT_THAT(RenderReport(View(object.dump().c_str()), {.width = 80}),
              ::testing::HasSubstr(lines));
  const std::string line = RenderLine(View(object.dump().c_str()), At(kNow));
  EXPECT_THAT(line, ::testing::EndsWith("TrainingFinished: vit-blur: Succeeded after 6 s\n"));
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
