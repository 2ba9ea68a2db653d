// A job's PodGroups, as the API server gets to see them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cluster.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using Fate = FakeApi::Fate;
using State = plan::HeadReport::State;

constexpr char kVolcano[] = R"({"scheduling": {"gang": "Volcano", "queue": "research"}})";

class Gang : public ::testing::Test {
 protected:
  static void Settle(FakeCluster& cluster) { ASSERT_TRUE(cluster.Settle("vit")); }
  // Trained, suspended, resumed, trained to the end.
  static std::string Live(FakeCluster& cluster) {
    const auto suspend = [&cluster](bool suspended) {
      cluster.api.Change("heterotrainingjobs", "team/vit", [suspended](json& job) {
        job["spec"]["runPolicy"]["suspend"] = suspended;
        job["metadata"]["generation"] = job["metadata"].value("generation", 1) + 1;
      });
    };
    cluster.CreateJob("vit", kVolcano);
    cluster.Start("vit");
    suspend(true);
    Settle(cluster);
    cluster.HeadSays("vit", State::kStopped);
    Settle(cluster);
    cluster.FinishTerminating();
    cluster.clock.Advance(Expectations::kPatience);
    Settle(cluster);
    EXPECT_TRUE(cluster.api.Objects("podgroups").empty());
    suspend(false);
    Settle(cluster);
    EXPECT_THAT(cluster.api.Objects("podgroups"), ElementsAre(Key("team/vit-gang-2")));
    cluster.Start("vit");
    cluster.HeadSays("vit", State::kSucceeded);
    Settle(cluster);
    cluster.FinishTerminating();
    cluster.clock.Advance(Expectations::kPatience);
    Settle(cluster);
    json left;
    for (const char* plural : {"pods", "services", "secrets", "configmaps", "podgroups"}) {
      for (const auto& [key, object] : cluster.api.Objects(plural)) left[plural].push_back(key);
    }
    return json{{"left", left},
                {"attempt", cluster.Status("vit").attempt},
                {"succeeded", cluster.Status("vit").Is(api::ConditionType::kSucceeded)}}
        .dump(1);
  }

  FakeCluster cluster_;
};

TEST_F(Gang, ThePodGroupIsTheJobsAndComesBeforeItsPods) {
  const std::string uid = cluster_.CreateJob("vit", kVolcano);
  Settle(cluster_);
  const json group = cluster_.api.Objects("podgroups").at("team/vit-gang-1");
  EXPECT_EQ(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], uid);
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(group["spec"]["minMember"], 4);
  EXPECT_EQ(group["spec"]["queue"], "research");
  EXPECT_EQ(group["spec"]["minResources"]["nvidia.com/gpu"], "1");
  for (const auto& [key, pod] : cluster_.api.Objects("pods")) {
    EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "vit-gang-1") << key;
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano") << key;
  }
  int group_made = -1, first_pod = -1, nth = 0;
  for (const FakeApi::Write& write : cluster_.api.writes()) {
    if (write.method == "POST" && write.path.ends_with("/podgroups")) group_made = nth;
    if (write.method == "POST" && write.path.ends_with("/pods") && first_pod < 0) first_pod = nth;
    ++nth;
  }
  EXPECT_GE(group_made, 0);
  EXPECT_LT(group_made, first_pod);
}

TEST_F(Gang, NothingIsWrittenTwiceWhileTheWatchIsLate) {
  cluster_.CreateJob("vit", kVolcano);
  cluster_.Sync();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster_.Pass("vit").ok());
  EXPECT_EQ(CountWrites(cluster_.api, "POST", "/podgroups"), 1);
}

// Volcano's webhook, say: the queue is closed, or does not exist.
TEST_F(Gang, WhatItsSchedulerRefusesIsSaidAndTriedAgain) {
  cluster_.CreateJob("vit", kVolcano);
  cluster_.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.path.find("/podgroups") == std::string::npos) return std::nullopt;
    return FakeApi::Error(403, "Forbidden", "queue research is closed");
  });
  Settle(cluster_);
  const api::JobStatus status = cluster_.Status("vit");
  EXPECT_EQ(ReasonOf(status, api::ConditionType::kPodsCreated), "CreateFailed");
  EXPECT_THAT(status.Find(api::ConditionType::kPodsCreated)->message,
              HasSubstr("podgroup vit-gang-1: "));
  EXPECT_TRUE(cluster_.api.Objects("pods").empty());
  cluster_.api.SetIntercept(nullptr);
  cluster_.clock.Advance(std::chrono::seconds(15));
  Settle(cluster_);
  EXPECT_EQ(cluster_.api.Objects("pods").size(), 4u);
}

TEST_F(Gang, APodGroupOfSomebodyElseIsAConflict) {
  cluster_.api.Put("podgroups", "team/vit-gang-1", {{"metadata", json::object()}});
  cluster_.CreateJob("vit", kVolcano);
  Settle(cluster_);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kPodsCreated), "NameConflict");
  EXPECT_TRUE(cluster_.api.Objects("pods").empty());
  EXPECT_EQ(cluster_.api.Objects("podgroups").size(), 1u);
}

TEST_F(Gang, AClusterWithoutPodGroupsIsAskedNothing) {
  cluster_.pod_groups_served = false;
  cluster_.CreateJob("vit", kVolcano);
  Settle(cluster_);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kPodsCreated), "GangMissing");
  EXPECT_EQ(CountWrites(cluster_.api, "POST", "/podgroups"), 0);
  const auto again = cluster_.Pass("vit");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->requeue_after, base::Duration(std::chrono::seconds(10)));
  cluster_.pod_groups_served = true;
  Settle(cluster_);
  EXPECT_EQ(cluster_.api.Objects("pods").size(), 4u);
}

TEST_F(Gang, ASchedulerThatTheOperatorIsNotSetUpForIsRefused) {
  cluster_.CreateJob("vit", R"({"scheduling": {"gang": "Coscheduling"}})");
  Settle(cluster_);
  EXPECT_EQ(ReasonOf(cluster_.Status("vit"), api::ConditionType::kFailed), "InvalidSpec");
}

class GangCrash : public Gang, public ::testing::WithParamInterface<Fate> {};

TEST_P(GangCrash, AtAnyWriteLeadsToTheSameEnd) {
  const std::string end = DieAtEachWrite(Live, GetParam());
  EXPECT_THAT(end, HasSubstr("\"attempt\": 2"));
  EXPECT_THAT(end, HasSubstr("\"succeeded\": true"));
}

INSTANTIATE_TEST_SUITE_P(BeforeAndAfterTheServer, GangCrash,
                         ::testing::Values(Fate::kLoseRequest, Fate::kLoseReply));

TEST(ProjectPodGroupTest, ItsMembersStandElsewhereInEachApi) {
  using children::GangApi;
  const auto members = [](const char* spec, GangApi gang_api) {
    return ProjectPodGroup({{"spec", json::parse(spec)}}, gang_api)->min_member;
  };
  EXPECT_EQ(members(R"({"minMember": 3})", GangApi::kVolcano), 3);
  EXPECT_EQ(members(R"({"minMember": 3})", GangApi::kCoscheduling), 3);
  EXPECT_EQ(members(R"({"podGroups": [{"policy": {"gang": {"minCount": 3}}}]})",
                    GangApi::kNativeWorkload),
            3);
  for (const GangApi native : {GangApi::kNativeAlpha, GangApi::kNativeBeta}) {
    EXPECT_EQ(members(R"({"schedulingPolicy": {"gang": {"minCount": 3}}})", native), 3);
  }
  EXPECT_EQ(members(R"({"podGroups": []})", GangApi::kNativeWorkload), 0);
}

}  // namespace
}  // namespace hetero::reconcile
