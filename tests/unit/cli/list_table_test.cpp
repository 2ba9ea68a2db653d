#include "cli/list_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "cli/queue_place.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json Job(const std::string& name, const std::string& condition, const std::string& message = "") {
  return {
      {"metadata",
       {{"name", name},
        {"namespace", "team"},
        {"uid", "uid-" + name},
        {"labels", {{"kueue.x-k8s.io/queue-name", "gpus"}}},
        {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
      {"spec",
       {{"roles",
         {{{"name", "head"}, {"type", "Head"}},
          {{"name", "blur"}, {"type", "CPUWorker"}, {"replicas", 4}},
          {{"name", "train"}, {"type", "GPUWorker"}, {"replicas", 2}, {"gpusPerReplica", 8}}}}}},
      {"status",
       {{"observedGeneration", 1},
        {"conditions",
         {{{"type", condition},
           {"status", "True"},
           {"reason", "Pending"},
           {"message", message},
           {"lastTransitionTime", "2026-01-01T00:01:00Z"}}}}}}};
}

json Training() {
  json job = Job("vit-blur", "Running");
  job["status"]["roleStatuses"] = {{{"name", "blur"}, {"desired", 6}, {"registered", 5}},
                                   {{"name", "train"}, {"desired", 2}, {"registered", 2}}};
  job["status"]["progress"] = {{"step", 1250},           {"totalSteps", 5000},
                               {"loss", 1.25},           {"samplesPerSecond", 512.04},
                               {"dataWaitPercent", 3.5}, {"etaSeconds", 4500}};
  return job;
}

JobView Listed(const json& object, const std::string& place = "") {
  auto view = ViewOf(object);
  EXPECT_TRUE(view.ok()) << view.status();
  view->place = place;
  return *view;
}

std::string Lines(const std::vector<JobView>& views, int width, bool wide = false) {
  const base::WallTime now = *api::ParseTime("2026-01-01T00:10:05Z");
  return absl::StrJoin(
             ListLines(views, now, {.style = {.width = width}, .namespaces = wide, .wide = wide}),
             "\n") +
         "\n";
}

constexpr char kKueueSays[] = "insufficient unused quota for cpu in flavor pool, 2 more needed";

std::vector<JobView> ThreeJobs() {
  return {Listed(Training()), Listed(Job("later", "Queued", kKueueSays), "3rd of 7 in gpus"),
          Listed(Job("broken", "Failed", "pod broken-train-0 failed 4 times"))};
}

TEST(ListTableTest, OneLineEachAndNotesInThePlaceOfFigures) {
  EXPECT_EQ(Lines(ThreeJobs(), 0),
            "NAME      STATE    GPUS  WORKERS  AGE     STEP       DONE  SAMPLES/S  WAIT  ETA\n"
            "vit-blur  Running  16    5/6      10m05s  1250/5000  25%   512.0      3.5%  1h15m\n"
            "later     Queued   16    0/4      10m05s  queued 3rd of 7 in gpus: Pending: "
            "insufficient unused quota for cpu in flavor pool, 2 more needed\n"
            "broken    Failed   16    0/4      10m05s  Pending: pod broken-train-0 failed 4 "
            "times\n");
}

TEST(ListTableTest, ANarrowTerminalLosesWordsThenColumns) {
  EXPECT_EQ(Lines(ThreeJobs(), 80),
            "NAME      STATE    GPUS  WORKERS  AGE     DONE  SAMPLES/S  WAIT  ETA\n"
            "vit-blur  Running  16    5/6      10m05s  25%   512.0      3.5%  1h15m\n"
            "later     Queued   16    0/4      10m05s  queued 3rd of 7 in gpus\n"
            "broken    Failed   16    0/4      10m05s  Pending: pod broken-train-0 failed ...\n");
  EXPECT_EQ(Lines(ThreeJobs(), 66),
            "NAME      STATE    GPUS  WORKERS  DONE  SAMPLES/S  WAIT  ETA\n"
            "vit-blur  Running  16    5/6      25%   512.0      3.5%  1h15m\n"
            "later     Queued   16    0/4      queued 3rd of 7 in gpus\n"
            "broken    Failed   16    0/4      Pending: pod broken-train-0 f...\n");
}

TEST(ListTableTest, NothingIsWiderThanTheTerminal) {
  json odd = Job("odd", "Failed", std::string(300, 'x') + "\x1b[2J\n" + std::string(99, 'y'));
  std::vector<JobView> views = ThreeJobs();
  views.push_back(Listed(odd));
  views.push_back(Listed(json::parse(R"({"metadata": {"name": "a"}})")));
  for (const bool wide : {false, true}) {
    for (int width = 1; width < 140; ++width) {
      for (const std::string& line : ListLines(
               views, base::WallTime(),
               {.style = {.width = width, .colour = true}, .namespaces = wide, .wide = wide})) {
        ASSERT_LE(Columns(line), static_cast<size_t>(width)) << line;
        ASSERT_THAT(line, Not(HasSubstr("\x1b[2J"))) << "pods must not draw";
      }
    }
  }
}

TEST(ListTableTest, WideHasTheRest) {
  json job = Training();
  job["status"]["cost"] = {{"dollars", 12.345}};
  job["status"]["findings"] = {{{"rule", "SlowRank"}, {"active", false}},
                               {{"rule", "InputBound"}, {"active", true}}};
  EXPECT_EQ(Lines({Listed(job)}, 0, true),
            "NAMESPACE  NAME      STATE    GPUS  WORKERS  TRAINERS  ATTEMPT  RESTARTS  LOSS  "
            "DOLLARS  QUEUE  FINDING     AGE     STEP       DONE  SAMPLES/S  WAIT  ETA\n"
            "team       vit-blur  Running  16    5/6      2/2       0        0         1.25  "
            "12.35    gpus   InputBound  10m05s  1250/5000  25%   512.0      3.5%  1h15m\n");
  EXPECT_THAT(Lines({Listed(Training())}, 0, true), HasSubstr("1.25  -        gpus "));
}

TEST(ListTableTest, WhatElseIsSaidOfAJob) {
  json job = Training();
  job["status"].erase("conditions");
  EXPECT_THAT(Lines({Listed(job)}, 0), HasSubstr("Waiting  16    5/6      10m05s  -     -     -"));
  job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(Lines({Listed(job)}, 0), HasSubstr("  managed by kueue.x-k8s.io/multikueue\n"));
  job["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:05Z";
  EXPECT_THAT(Lines({Listed(job)}, 0), HasSubstr("  being deleted\n"));
  JobView gone = Listed(job);
  gone.remark = "deleted";
  EXPECT_THAT(Lines({gone}, 0), HasSubstr("  deleted\n"));
  EXPECT_THAT(Lines({Listed(json::parse(R"({"metadata": {"name": "a"}})"))}, 0),
              HasSubstr("a     Waiting  0     0/0      -    not seen by an operator yet\n"));
}

json Pending(const std::string& name_space, const std::string& queue, const std::string& owner) {
  return {{"metadata", {{"namespace", name_space}, {"ownerReferences", {{{"uid", owner}}}}}},
          {"localQueueName", queue}};
}

TEST(QueuePlaceTest, IsOfTheWorkloadsOfTheOwnQueue) {
  const JobView job = Listed(Job("later", "Queued"));
  json summary = {{"items",
                   {Pending("team", "gpus", "uid-first"), Pending("other", "gpus", "uid-x"),
                    Pending("team", "gpus", "uid-later"), Pending("team", "cpus", "uid-y"),
                    Pending("team", "gpus", "uid-last")}}};
  EXPECT_EQ(PlaceIn(summary, job), "2nd of 3 in gpus");
  for (const auto& [before, words] :
       std::vector<std::pair<int, std::string>>{{0, "1st of 1"},
                                                {2, "3rd of 3"},
                                                {10, "11th of 11"},
                                                {11, "12th of 12"},
                                                {20, "21st of 21"},
                                                {111, "112th of 112"},
                                                {999, "1000th of 1000+"}}) {
    summary["items"] = json::array();
    for (int i = 0; i < before; ++i) summary["items"].push_back(Pending("team", "gpus", "uid-z"));
    summary["items"].push_back(Pending("team", "gpus", "uid-later"));
    EXPECT_EQ(PlaceIn(summary, job), words + " in gpus");
  }
  for (const char* odd : {"null", "{}", R"({"items": 3})", R"({"items": [1, {"metadata": 7}]})"}) {
    EXPECT_EQ(PlaceIn(json::parse(odd), job), "") << odd;
  }
}

}  // namespace
}  // namespace hetero::cli
