// Whoever may create pods somewhere in the cluster and has read a job's uid tries to play with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "api/job_resource.h"
#include "api/labels.h"
#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using api::ConditionType;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using State = plan::HeadReport::State;

constexpr char kVerdict[] = R"({"state": "Succeeded", "message": "forged"})";

json Owner(const std::string& uid) {
  return json::array({{{"apiVersion", api::kApiVersion},
                       {"kind", api::kKind},
                       {"name", "vit"},
                       {"uid", uid},
                       {"controller", true}}});
}

// With all labels of a real one; `owner` empty: no ownerReference.
json ForgedPod(const std::string& uid, const std::string& role, const std::string& attempt,
               const std::string& owner = "") {
  json pod = {{"metadata",
               {{"labels",
                 {{api::kManagedByLabel, api::kManagedByValue},
                  {api::kJobUidLabel, uid},
                  {api::kRoleLabel, role},
                  {api::kReplicaIndexLabel, "0"},
                  {api::kAttemptLabel, attempt}}}}},
              {"status", {{"phase", "Pending"}}}};
  if (!owner.empty()) pod["metadata"]["ownerReferences"] = Owner(owner);
  return pod;
}

class Ownership : public ::testing::Test {
 protected:
  // A job that trains; its uid.
  std::string Train(const std::string& more_spec = "") {
    const std::string uid = cluster_.CreateJob("vit", more_spec);
    EXPECT_TRUE(cluster_.Settle("vit"));
    cluster_.RunPods();
    EXPECT_TRUE(cluster_.Settle("vit"));
    cluster_.HeadSays("vit", State::kRunning);
    EXPECT_TRUE(cluster_.Settle("vit"));
    before_ = PodUids();
    EXPECT_THAT(before_, SizeIs(4));
    return uid;
  }
  std::map<std::string, std::string> PodUids() const {
    std::map<std::string, std::string> uids;
    for (const auto& [key, pod] : cluster_.api.Objects("pods")) {
      if (key.starts_with("team/vit-")) uids[key] = pod["metadata"]["uid"];
    }
    return uids;
  }
  int Deleted(const std::string& part) const {
    const auto writes = cluster_.api.writes();
    return static_cast<int>(std::count_if(writes.begin(), writes.end(), [&](const auto& write) {
      return write.method == "DELETE" && write.path.find(part) != std::string::npos;
    }));
  }
  void ExpectUntouched() {
    ASSERT_TRUE(cluster_.Settle("vit"));
    EXPECT_EQ(cluster_.Status("vit").attempt, 1);
    EXPECT_EQ(cluster_.Status("vit").restarts, 0);
    EXPECT_FALSE(cluster_.Status("vit").finished());
    EXPECT_EQ(PodUids(), before_);
  }

  FakeCluster cluster_;
  std::map<std::string, std::string> before_;
};

TEST_F(Ownership, APodOfAnotherNamespaceTakesOverNoJob) {
  const std::string uid = Train();
  for (const char* attempt : {"999", "2147483647", "-5"}) {
    SCOPED_TRACE(attempt);
    // Even with the ownerReference: an owner in another namespace is none.
    cluster_.api.Put("pods", "other/vit-gpu-0", ForgedPod(uid, "gpu", attempt, uid));
    ExpectUntouched();
    cluster_.api.Put("pods", "other/vit-gpu-0", ForgedPod(uid, "gpu", attempt));
    ExpectUntouched();
  }
  EXPECT_THAT(cluster_.api.Objects("pods"), SizeIs(5)) << "nor is it deleted";
}

TEST_F(Ownership, APodThatTheJobDoesNotOwnRaisesNoAttempt) {
  const std::string uid = Train();
  cluster_.api.Put("pods", "team/stranger", ForgedPod(uid, "gpu", "999"));
  cluster_.api.Put("pods", "team/of-another", ForgedPod(uid, "gpu", "999", "another-uid"));
  ExpectUntouched();
}

// In the job's own namespace whoever creates pods can write ownerReferences too. Nothing overflows,
// and what belongs to no attempt goes.
TEST_F(Ownership, AnAttemptOutOfRangeIsCleanedUpAndNotTakenOver) {
  const std::string uid = Train();
  for (const char* attempt : {"2147483647", "-1", "1000000000", "5000", "many"}) {
    SCOPED_TRACE(attempt);
    cluster_.api.Put("pods", "team/stranger", ForgedPod(uid, "gpu", attempt, uid));
    ExpectUntouched();
    EXPECT_FALSE(cluster_.api.Objects("pods").contains("team/stranger"));
  }
}

TEST_F(Ownership, AnAttemptInTheStatusOutOfRangeIsPutRight) {
  Train();
  for (const int64_t attempt : {int64_t{2147483647}, int64_t{-7}}) {
    SCOPED_TRACE(attempt);
    cluster_.api.Change("heterotrainingjobs", "team/vit",
                        [&](json& job) { job["status"]["attempt"] = attempt; });
    ASSERT_TRUE(cluster_.Settle("vit"));
    EXPECT_GE(cluster_.Status("vit").attempt, 0);
    EXPECT_LE(cluster_.Status("vit").attempt, plan::kMaxAttempt);
  }
}

TEST_F(Ownership, AForgedHeadPassesNoVerdict) {
  const std::string uid = cluster_.CreateJob("vit");
  json head = ForgedPod(uid, "head", "1");
  head["status"] = json::parse(R"({"phase": "Succeeded", "containerStatuses": [{"name": "runtime",
      "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})");
  head["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = kVerdict;
  cluster_.api.Put("pods", "team/vit-head-0", head);
  cluster_.api.Put("pods", "other/vit-head-0", head);
  ASSERT_TRUE(cluster_.Settle("vit"));
  const api::JobStatus status = cluster_.Status("vit");
  EXPECT_FALSE(status.finished());
  ASSERT_NE(status.Find(ConditionType::kPodsCreated), nullptr);
  EXPECT_EQ(status.Find(ConditionType::kPodsCreated)->reason, "NameConflict");
  EXPECT_THAT(status.Find(ConditionType::kPodsCreated)->message,
              HasSubstr("pod vit-head-0 exists and belongs to no job; delete that"));
}

TEST_F(Ownership, AServiceOfAnEarlierNamespaceRedirectsNobody) {
  const std::string uid = Train();
  const std::string address = cluster_.Status("vit").head_address;
  for (const bool owned : {false, true}) {
    json service = {
        {"metadata",
         {{"labels", {{api::kManagedByLabel, api::kManagedByValue}, {api::kJobUidLabel, uid}}}}},
        {"spec", {{"clusterIP", "10.96.6.66"}}}};
    if (owned) service["metadata"]["ownerReferences"] = Owner(uid);
    cluster_.api.Put("services", "a-namespace/vit-head", service);
    ExpectUntouched();
    EXPECT_EQ(cluster_.Status("vit").head_address, address);
    EXPECT_EQ(cluster_.heads.followed.at("team/vit").address, "10.96.0.7:7071");
  }
}

TEST_F(Ownership, AServiceOfItsNameThatIsNotItsOwnIsNotAdopted) {
  const std::string uid = cluster_.CreateJob("vit");
  cluster_.api.Put(
      "services", "team/vit-head",
      {{"metadata",
        {{"labels", {{api::kManagedByLabel, api::kManagedByValue}, {api::kJobUidLabel, uid}}}}},
       {"spec", {{"clusterIP", "10.96.6.66"}}}});
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(cluster_.Status("vit").Find(ConditionType::kPodsCreated)->reason, "NameConflict");
  EXPECT_THAT(cluster_.api.Objects("pods"), SizeIs(0));
}

TEST_F(Ownership, AStrayLabelledPodHoldsUpNeitherSuspendNorResume) {
  const std::string uid = Train();
  cluster_.api.Put("pods", "other/stranger", ForgedPod(uid, "cpu", "1"));
  cluster_.api.Change("heterotrainingjobs", "team/vit", [](json& job) {
    job["spec"]["runPolicy"]["suspend"] = true;
    job["metadata"]["generation"] = 2;
  });
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_THAT(cluster_.heads.stops, SizeIs(1));
  cluster_.HeadSays("vit", State::kStopped);
  ASSERT_TRUE(cluster_.Settle("vit"));
  cluster_.FinishTerminating();
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_TRUE(cluster_.Status("vit").Is(ConditionType::kSuspended));
  EXPECT_EQ(Deleted("/pods?"), 1);
  for (int i = 0; i < 10; ++i) {
    cluster_.clock.Advance(Expectations::kPatience);
    cluster_.Sync();
    ASSERT_TRUE(cluster_.Pass("vit").ok());
  }
  EXPECT_EQ(Deleted("/pods?"), 1) << "nothing of the job's is left to delete";

  cluster_.api.Change("heterotrainingjobs", "team/vit", [](json& job) {
    job["spec"]["runPolicy"]["suspend"] = false;
    job["metadata"]["generation"] = 3;
  });
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(cluster_.Status("vit").attempt, 2);
  EXPECT_THAT(PodUids(), SizeIs(4));
}

// Its label is gone, so the one call that deletes all pods would never reach it.
TEST_F(Ownership, AnOwnedPodWithoutTheJobsLabelIsCountedAndCleanedUp) {
  Train(R"({"runPolicy": {"maxRestarts": 5}})");
  cluster_.api.Change("pods", "team/vit-cpu-1",
                      [](json& pod) { pod["metadata"]["labels"].erase(api::kJobUidLabel); });
  ExpectUntouched();
  cluster_.EndContainer("vit-cpu-1", 1, "no such file");
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_EQ(cluster_.Status("vit").restarts, 1);

  cluster_.RunPods();
  cluster_.api.Change("pods", "team/vit-cpu-0",
                      [](json& pod) { pod["metadata"]["labels"].erase(api::kJobUidLabel); });
  cluster_.HeadSays("vit", State::kSucceeded);
  ASSERT_TRUE(cluster_.Settle("vit"));
  cluster_.FinishTerminating();
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_THAT(PodUids(), SizeIs(0));
}

// The watch selects by this label: whatever happens to such a pod would go unnoticed.
TEST_F(Ownership, AnOwnedPodOutOfTheWatchsSightIsMadeAnew) {
  Train();
  cluster_.api.Change("pods", "team/vit-cpu-1",
                      [](json& pod) { pod["metadata"]["labels"].erase(api::kManagedByLabel); });
  const std::string hidden = before_.at("team/vit-cpu-1");
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_TRUE(cluster_.Pod("vit-cpu-1").deletion_time);
  cluster_.FinishTerminating();
  cluster_.clock.Advance(Expectations::kPatience);
  ASSERT_TRUE(cluster_.Settle("vit"));
  EXPECT_NE(cluster_.Pod("vit-cpu-1").uid, hidden);
  EXPECT_TRUE(cluster_.Pod("vit-cpu-1").labelled);
  EXPECT_EQ(cluster_.Status("vit").restarts, 0);
  EXPECT_EQ(cluster_.Status("vit").attempt, 1);
}

}  // namespace
}  // namespace hetero::reconcile
