// The resource definition in the cluster is that of an older release: the API server drops the
// fields of the status that it does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/log.h"
#include "fake_cluster.h"
#include "operator/reconcile/dropped_fields.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using State = plan::HeadReport::State;

const std::set<std::string> kNewSince011 = {"specHash", "history", "images"};

int StatusWrites(const FakeApi& api) {
  const auto writes = api.writes();
  return static_cast<int>(std::count_if(writes.begin(), writes.end(), [](const auto& write) {
    return write.method == "PUT" && write.path.ends_with("/status");
  }));
}

json StoredStatus(const FakeCluster& cluster, const std::string& name) {
  return cluster.api.Objects("heterotrainingjobs").at("team/" + name)["status"];
}

// A job that an older operator has begun, in the hands of this one.
void TakeOver(FakeCluster& cluster, const std::string& name) {
  cluster.CreateJob(name);
  ASSERT_TRUE(cluster.Settle(name));
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle(name));
  cluster.HeadSays(name, State::kRunning);
  ASSERT_TRUE(cluster.Settle(name));
  cluster.api.SetPruned(kNewSince011);
  cluster.api.Change("heterotrainingjobs", "team/" + name, [](json& job) {
    for (const std::string& field : kNewSince011) job["status"].erase(field);
  });
  cluster.Restart();
}

void TenPasses(FakeCluster& cluster, const std::string& name) {
  for (int i = 0; i < 10; ++i) {
    cluster.Sync();
    ASSERT_TRUE(cluster.Pass(name).ok());
    cluster.clock.Advance(seconds(6));  // longer than writes of progress wait
    cluster.heads.reports["team/" + name].last_heard = cluster.clock.WallNow();
    cluster.heads.reports["team/" + name].last_step_time = cluster.clock.WallNow();
  }
}

// Each pass found the status incomplete, two of them a second.
TEST(OldDefinition, WhatTheServerDropsIsWrittenOnce) {
  FakeCluster cluster;
  TakeOver(cluster, "vit");
  const int before = StatusWrites(cluster.api);
  TenPasses(cluster, "vit");
  EXPECT_EQ(StatusWrites(cluster.api) - before, 1);
  EXPECT_FALSE(StoredStatus(cluster, "vit").contains("specHash")) << "the server keeps none";
}

TEST(OldDefinition, AChangeOfNothingElseIsNoWrite) {
  FakeCluster cluster;
  TakeOver(cluster, "vit");
  cluster.heads.reports["team/vit"].history = "the first";
  TenPasses(cluster, "vit");
  const int before = StatusWrites(cluster.api);
  cluster.heads.reports["team/vit"].history = "the second";
  TenPasses(cluster, "vit");
  EXPECT_EQ(StatusWrites(cluster.api), before);

  // This process has it all the same.
  cluster.EndContainer("vit-head-0", 137);
  cluster.heads.reports.clear();
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods").at("team/vit-head-0").dump(), HasSubstr("the second"));
}

TEST(OldDefinition, WhatElseChangesIsWrittenAsEver) {
  FakeCluster cluster;
  TakeOver(cluster, "vit");
  TenPasses(cluster, "vit");
  cluster.EndContainer("vit-cpu-1", 1, "no such file");
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(StoredStatus(cluster, "vit").value("restarts", 0), 1);
}

// The spec changes during a suspension that no pass sees: known by the hash that was dropped.
TEST(OldDefinition, AChangedSpecIsNoticedByTheProcessThatBeganTheAttempt) {
  FakeCluster cluster;
  cluster.api.SetPruned(kNewSince011);
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.api.Change("heterotrainingjobs", "team/vit", [](json& job) {
    job["spec"]["training"]["maxSteps"] = 11;
    job["metadata"]["generation"] = 3;
  });
  cluster.Sync();
  ASSERT_TRUE(cluster.Pass("vit").ok());
  const api::JobStatus status = cluster.Status("vit");
  ASSERT_NE(status.Find(api::ConditionType::kSuspended), nullptr);
  EXPECT_EQ(status.Find(api::ConditionType::kSuspended)->reason, "SpecChanged");
}

TEST(OldDefinition, OnceTheNewOneIsAppliedAllIsStored) {
  FakeCluster cluster;
  TakeOver(cluster, "vit");
  cluster.heads.reports["team/vit"].history = "the first";
  TenPasses(cluster, "vit");
  cluster.api.SetPruned({});
  api::JobProgress progress;
  progress.step = 7;
  progress.last_update_time = std::chrono::floor<seconds>(cluster.clock.WallNow());
  cluster.heads.reports["team/vit"].progress = progress;
  TenPasses(cluster, "vit");
  EXPECT_TRUE(StoredStatus(cluster, "vit").contains("specHash"));
  EXPECT_EQ(StoredStatus(cluster, "vit").value("history", ""), "the first");
  // And from now on a change of the history alone is one.
  cluster.heads.reports["team/vit"].history = "the second";
  TenPasses(cluster, "vit");
  EXPECT_EQ(StoredStatus(cluster, "vit").value("history", ""), "the second");
}

TEST(OldDefinition, IsToldOnceForAllJobs) {
  log::Init("test", log::Level::kWarning);
  ::testing::internal::CaptureStderr();
  FakeCluster cluster;
  cluster.api.SetPruned(kNewSince011);
  for (const char* name : {"vit", "other"}) {
    cluster.CreateJob(name);
    EXPECT_TRUE(cluster.Settle(name));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  log::Init("test", log::Level::kOff);
  EXPECT_THAT(log, HasSubstr("heterotrainingjobs.training.hetero.dev"));
  EXPECT_THAT(log, HasSubstr("specHash"));
  const size_t first = log.find("kubectl apply -f charts/hetero-operator/crds/");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_THAT(log.substr(first + 1), Not(HasSubstr("kubectl apply")));
}

TEST(DroppedFieldsTest, AFieldWithinAnObjectIsToldByItsPath) {
  api::JobStatus status;
  status.attempt = 3;
  status.progress.emplace();
  status.progress->step = 5;
  status.progress->samples_per_second = 7;
  const json sent = json::parse(api::StatusToJson(status));
  json kept = sent;
  kept["progress"].erase("samplesPerSecond");
  DroppedFields dropped;
  EXPECT_FALSE(dropped.Learn(sent, sent));
  EXPECT_EQ(dropped.Names(), "");
  EXPECT_TRUE(dropped.Learn(sent, kept));
  EXPECT_FALSE(dropped.Learn(sent, kept)) << "no news";
  EXPECT_EQ(dropped.Names(), "progress.samplesPerSecond");

  auto stored = std::make_shared<plan::ObservedJob>();
  stored->status = *api::StatusFromJson(kept.dump());
  EXPECT_EQ(dropped.Complete(stored)->status, status);
  api::JobStatus faster = status;
  faster.progress->samples_per_second = 9;
  EXPECT_TRUE(dropped.Keep(status, faster));
  EXPECT_EQ(dropped.Complete(stored)->status, faster);
  api::JobStatus further = faster;
  further.progress->step = 6;
  EXPECT_FALSE(dropped.Keep(faster, further));
}

}  // namespace
}  // namespace hetero::reconcile
