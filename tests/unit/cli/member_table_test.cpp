#include "cli/member_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/live_figures.h"
#include "cli/port_forward.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json JobOfThree() {
  return json::parse(R"({
    "metadata": {"name": "vit", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"roles": [{"name": "head", "type": "Head"},
                       {"name": "train", "type": "GPUWorker", "replicas": 1},
                       {"name": "blur", "type": "CPUWorker", "replicas": 4}]},
    "status": {"observedGeneration": 1, "registered": "5/6",
      "conditions": [{"type": "Running", "status": "True", "reason": "TrainingStarted",
                      "lastTransitionTime": "2026-01-01T00:01:00Z"}],
      "roleStatuses": [{"name": "blur", "desired": 4, "registered": 3}],
      "progress": {"step": 250, "totalSteps": 1000, "samplesPerSecond": 512.04, "loss": 6.908,
                   "dataWaitPercent": 41.2, "etaSeconds": 75,
                   "lastUpdateTime": "2026-01-01T00:10:04Z"}}})");
}

json MakePod(const std::string& role, int index, const std::string& state,
             const std::string& node = "node-1") {
  return {{"metadata",
           {{"name", "vit-" + role + "-" + std::to_string(index)},
            {"labels",
             {{"training.hetero.dev/role", role},
              {"training.hetero.dev/replica-index", std::to_string(index)}}}}},
          {"spec", {{"nodeName", node}}},
          {"status",
           {{"phase", "Running"},
            {"containerStatuses", {{{"name", "runtime"}, {"state", json::parse(state)}}}}}}};
}

constexpr char kRuns[] = R"({"running": {}})";

std::vector<json> Pods() {
  json waiting = MakePod("blur", 2, "{}", "");
  waiting["status"] = json::parse(R"({"phase": "Pending", "conditions": [
      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]})");
  return {MakePod("blur", 10, R"({"waiting": {"reason": "ImagePullBackOff"}})"),
          waiting,
          MakePod("blur", 1, kRuns),
          MakePod("blur", 0, kRuns),
          MakePod("train", 0, kRuns, "node-2"),
          MakePod("head", 0, kRuns)};
}

TopView View() {
  TopView view{.job = *ViewOf(JobOfThree()),
               .members = MembersOf(JobOfThree(), Pods()),
               .verdict = "",
               .missing = ""};
  return view;
}

std::string Shown(const TopView& view, int width) {
  return RenderTop(view, *api::ParseTime("2026-01-01T00:10:05Z"), {.width = width});
}

TEST(MemberTableTest, MembersStandInTheOrderOfRolesAndReplicas) {
  std::vector<std::string> names;
  for (const Member& member : MembersOf(JobOfThree(), Pods())) {
    names.push_back(member.member() + " " + member.state);
  }
  EXPECT_THAT(names,
              ElementsAre("head-0 Running", "train-0 Running", "blur-0 Running", "blur-1 Running",
                          "blur-2 Unschedulable", "blur-10 ImagePullBackOff"));
  json going = MakePod("blur", 0, kRuns);
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:05Z";
  EXPECT_EQ(MembersOf(JobOfThree(), {going})[0].state, "Terminating");
  for (const char* odd : {"null", "[]", "{}", R"({"metadata": {"labels": 3}, "status": []})"}) {
    EXPECT_EQ(MembersOf(json::parse("{}"), {json::parse(odd)})[0].state, "Pending") << odd;
  }
}

TEST(MemberTableTest, ASharedScreen) {
  TopView view = View();
  view.verdict = "each step waits 41 % for data; 2 more blur replicas: 1.5 times the rate";
  for (Member& member : view.members) member.cores = 0.25;
  view.members[1].samples_per_second = 512;
  view.members[1].wait_percent = 41.2;
  view.members[2].samples_per_second = 384;
  view.members[2].memory_bytes = 1 << 30;
  view.members[3].samples_per_second = 128;
  view.members[3].memory_bytes = 20.0 * (1 << 30);
  view.members[3].memory_is_peak = true;
  view.members[3].restarts = 2;
  EXPECT_EQ(Shown(view, 100),
            R"(team/vit  Running  age 10m05s  registered 5/6  restarts 0
each step waits 41 % for data; 2 more blur replicas: 1.5 times the rate
Progress  [##########..............................] 25.0 %  step 250 of 1000
Rate      512.0 samples/s  waiting for data 41.2 %  loss 6.908  ends in 1m15s

MEMBER   NODE    STATE             CPU   MEMORY   SAMPLES/S  SHARE   WAIT   RESTARTS
head-0   node-1  Running           0.25  -        -          -       -      0
train-0  node-2  Running           0.25  -        512.0      100.0%  41.2%  0
blur-0   node-1  Running           0.25  1024Mi   384.0      75.0%   -      0
blur-1   node-1  Running           0.25  <20.0Gi  128.0      25.0%   -      2
blur-2   -       Unschedulable     0.25  -        -          -       -      -
blur-10  node-1  ImagePullBackOff  0.25  -        -          -       -      0
)");
}

TEST(MemberTableTest, WithoutTheHeadsVerdictTheStatusSaysWhatLimitsIt) {
  TopView view = View();
  EXPECT_THAT(Shown(view, 100), HasSubstr("\nGPU workers wait 41.2 % of their time for data; 1 of "
                                          "4 CPU workers is missing\n"));
  view.job.status.progress->data_wait_percent = 3;
  EXPECT_THAT(Shown(view, 100), HasSubstr("for data: CPU workers keep up\n"));
  view.missing = "No figures of pods: why";
  EXPECT_THAT(Shown(view, 100), ::testing::EndsWith("\nNo figures of pods: why\n"));
  view.job.status.progress->step = 0;
  EXPECT_THAT(Shown(view, 100), Not(HasSubstr("keep up")));
}

TEST(MemberTableTest, AQueuedJobSaysWhereItStands) {
  TopView view = View();
  view.members.clear();
  view.job.place = "2nd of 3 in team";
  view.job.status.progress.reset();
  view.job.status.conditions[0] = {.type = api::ConditionType::kQueued,
                                   .status = api::ConditionStatus::kTrue,
                                   .reason = "Pending",
                                   .message = "2 more needed"};
  EXPECT_THAT(
      Shown(view, 80),
      ::testing::EndsWith("Queued, Pending, 2nd of 3 in team:\n  2 more needed\n\nNo pods\n"));
}

TEST(MemberTableTest, NothingIsWiderThanTheTerminal) {
  TopView view = View();
  view.verdict = std::string(200, 'v') + "\x1b[2J";
  view.members[0].node = std::string(90, 'n') + "\x1b[2J";
  for (int width = 20; width < 120; ++width) {
    const std::string text = Shown(view, width);
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "pods must not draw";
    for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
      ASSERT_LE(Columns(text.substr(begin, text.find('\n', begin) - begin)),
                static_cast<size_t>(width))
          << text;
    }
  }
}

TEST(LiveFiguresTest, ReadsQuantitiesAndReports) {
  EXPECT_DOUBLE_EQ(*ParseQuantity("250m"), 0.25);
  EXPECT_DOUBLE_EQ(*ParseQuantity("156340123n"), 0.156340123);
  EXPECT_DOUBLE_EQ(*ParseQuantity("1.5"), 1.5);
  EXPECT_DOUBLE_EQ(*ParseQuantity("2Ki"), 2048);
  EXPECT_DOUBLE_EQ(*ParseQuantity("3M"), 3e6);
  for (const char* odd : {"", "m", "Ki", "one"}) EXPECT_FALSE(ParseQuantity(odd)) << odd;
  const auto counters = CountersOf(json::parse(R"({"workers": [
      {"role": "gpu", "index": 1, "samples": 5, "cpuSeconds": 0.5, "restarts": 1,
       "dataWaitPercent": 41.5},
      {"role": "gpu", "index": 1, "samples": 7, "cpuSeconds": 1, "peakRssBytes": 9}, 3]})"));
  ASSERT_TRUE(counters.contains("gpu-1"));
  EXPECT_EQ(counters.at("gpu-1").samples, 12) << "the ranks of a pod together";
  EXPECT_DOUBLE_EQ(counters.at("gpu-1").cpu_seconds, 1.5);
  EXPECT_EQ(counters.at("gpu-1").restarts, 1);
  EXPECT_DOUBLE_EQ(*counters.at("gpu-1").wait_percent, 41.5);
}

TEST(PortForwardTest, KnowsThePortOnceItIsSaid) {
  const std::string said = "Forwarding from 127.0.0.1:40041 -> 7072\n";
  EXPECT_EQ(ForwardedPort(said), 40041);
  EXPECT_EQ(ForwardedPort("Warning: something\n" + said), 40041);
  for (const char* other : {"", "Forwarding from 127.0.0.1:400", "Forwarding from [::1]:4 -> 7",
                            "Forwarding from 127.0.0.1:x -> 7", "Forwarding from 127.0.0.1:0 -> 7",
                            "Forwarding from 127.0.0.1:70000 -> 7"}) {
    EXPECT_EQ(ForwardedPort(other), 0) << other;
  }
}

}  // namespace
}  // namespace hetero::cli
