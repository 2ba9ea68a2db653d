#include "operator/reconcile/expectations.h"

#include <gtest/gtest.h>

namespace hetero::reconcile {
namespace {

using plan::ChildKind;
using std::chrono::seconds;

const base::Instant kNow{seconds(100)};
const base::WallTime kWallNow{seconds(1'000'000)};

std::shared_ptr<const plan::ObservedPod> Pod(const std::string& name, const std::string& uid) {
  auto pod = std::make_shared<plan::ObservedPod>();
  pod->name = name;
  pod->uid = uid;
  return pod;
}

std::shared_ptr<const plan::ObservedObject> Object(const std::string& uid) {
  auto object = std::make_shared<plan::ObservedObject>();
  object->uid = uid;
  return object;
}

TEST(ExpectationsTest, ACreatedPodIsThereUntilTheStoreShowsIt) {
  Expectations expectations;
  expectations.PodCreated(Pod("a", "1"), kNow);
  plan::Observed late;
  expectations.Overlay(late, kNow, kWallNow);
  ASSERT_EQ(late.pods.size(), 1u);
  EXPECT_EQ(expectations.Remaining(kNow), Expectations::kPatience);

  plan::Observed seen;
  seen.pods = {Pod("a", "1")};
  expectations.Overlay(seen, kNow, kWallNow);
  EXPECT_EQ(seen.pods.size(), 1u);
  EXPECT_EQ(expectations.Remaining(kNow), std::nullopt);
  plan::Observed gone;
  expectations.Overlay(gone, kNow, kWallNow);
  EXPECT_TRUE(gone.pods.empty());
}

TEST(ExpectationsTest, ACreatedPodReplacesTheOldOneOfItsName) {
  Expectations expectations;
  expectations.PodCreated(Pod("a", "2"), kNow);
  plan::Observed late;
  late.pods = {Pod("a", "1"), Pod("b", "3")};
  expectations.Overlay(late, kNow, kWallNow);
  ASSERT_EQ(late.pods.size(), 2u);
  EXPECT_EQ(late.pods[0]->uid, "3");
  EXPECT_EQ(late.pods[1]->uid, "2");
}

TEST(ExpectationsTest, ADeletedPodIsTerminatingAndAForcedOneGone) {
  Expectations expectations;
  expectations.Deleted("1", kWallNow + seconds(30), kNow);
  expectations.Deleted("2", kWallNow, kNow);
  plan::Observed late;
  late.pods = {Pod("a", "1"), Pod("b", "2"), Pod("c", "3")};
  expectations.Overlay(late, kNow, kWallNow);
  ASSERT_EQ(late.pods.size(), 2u);
  EXPECT_EQ(late.pods[0]->deletion_time, kWallNow + seconds(30));
  EXPECT_EQ(late.pods[1]->deletion_time, std::nullopt);
}

TEST(ExpectationsTest, OtherObjectsAreLaidOverToo) {
  Expectations expectations;
  expectations.ObjectCreated(ChildKind::kService, Object("1"), kNow);
  expectations.Deleted("2", kWallNow, kNow);
  plan::Observed late;
  late.config_map = Object("2");
  late.network_policy = Object("3");
  expectations.Overlay(late, kNow, kWallNow);
  ASSERT_NE(late.service, nullptr);
  EXPECT_EQ(late.service->uid, "1");
  EXPECT_EQ(late.config_map, nullptr);
  EXPECT_NE(late.network_policy, nullptr);
}

TEST(ExpectationsTest, NothingIsBelievedForEver) {
  Expectations expectations;
  expectations.PodCreated(Pod("a", "1"), kNow);
  expectations.Deleted("2", kWallNow, kNow);
  plan::Observed late;
  late.pods = {Pod("b", "2")};
  expectations.Overlay(late, kNow + Expectations::kPatience, kWallNow);
  ASSERT_EQ(late.pods.size(), 1u);
  EXPECT_EQ(late.pods[0]->uid, "2");
}

// That a job's ConfigMap or Service is gone recreates all its pods: a watch that was late for some
// seconds must not look like it.
TEST(ExpectationsTest, ThePatienceWithOtherObjectsIsLong) {
  Expectations expectations;
  expectations.ObjectCreated(ChildKind::kConfigMap, Object("1"), kNow);
  plan::Observed late;
  expectations.Overlay(late, kNow + seconds(59), kWallNow);
  ASSERT_NE(late.config_map, nullptr);
  EXPECT_EQ(expectations.Remaining(kNow + seconds(59)), base::Duration(seconds(1)));
  plan::Observed gone;
  expectations.Overlay(gone, kNow + seconds(60), kWallNow);
  EXPECT_EQ(gone.config_map, nullptr);
}

}  // namespace
}  // namespace hetero::reconcile
