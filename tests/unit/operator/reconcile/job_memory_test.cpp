#include "operator/reconcile/job_memory.h"

#include <gtest/gtest.h>

#include "operator/reconcile/progress_throttle.h"

namespace hetero::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<const plan::ObservedJob> JobAt(const std::string& version, int attempt = 0) {
  auto job = std::make_shared<plan::ObservedJob>();
  job->resource_version = version;
  job->status.attempt = attempt;
  return job;
}

TEST(OwnWritesTest, StandInForAStoreThatIsLate) {
  OwnWrites writes;
  const auto a = JobAt("a");
  EXPECT_EQ(writes.Newest(a), a);
  api::JobStatus status;
  status.attempt = 1;
  writes.Written(*a, status, "b");
  EXPECT_EQ(writes.Newest(a)->resource_version, "b");
  EXPECT_EQ(writes.Newest(a)->status.attempt, 1);
  status.attempt = 2;
  writes.Written(*writes.Newest(a), status, "c");
  EXPECT_EQ(writes.Newest(JobAt("a"))->status.attempt, 2);
  EXPECT_EQ(writes.Newest(JobAt("b"))->resource_version, "c");
  // Versions are opaque: whatever was not written over is newer.
  EXPECT_EQ(writes.Newest(JobAt("0"))->resource_version, "0");
  EXPECT_EQ(writes.Newest(JobAt("b"))->resource_version, "b");
}

// The server leaves the version as it is when nothing changed.
TEST(OwnWritesTest, AWriteWithoutAChangeSupersedesNothing) {
  OwnWrites writes;
  const auto a = JobAt("a");
  writes.Written(*a, {}, "a");
  const auto again = JobAt("a", 7);
  EXPECT_EQ(writes.Newest(again)->status.attempt, 7);
}

// Seen of an API server that was busy when the definition with spec.managedBy came: its watch
// brought the job without the field, and the operator created pods for a job that was another's.
TEST(KnownManagerTest, AJobStaysItsManagersWhenAServerDropsTheField) {
  KnownManager known;
  const auto ours = JobAt("a");
  EXPECT_EQ(known.Complete(ours), ours);
  auto theirs = std::make_shared<plan::ObservedJob>(*JobAt("b"));
  theirs->job.spec.run_policy.managed_by = "example.com/other";
  EXPECT_EQ(known.Complete(theirs), theirs);
  EXPECT_EQ(known.Complete(JobAt("c"))->job.spec.manager(), "example.com/other");
  auto moved = std::make_shared<plan::ObservedJob>(*JobAt("d"));
  moved->job.spec.managed_by = "example.com/other";
  EXPECT_EQ(known.Complete(moved), moved);
}

TEST(ConflictBackoffTest, WaitsLongerForTheSameVersionOnly) {
  ConflictBackoff conflicts;
  base::Instant now{seconds(100)};
  EXPECT_EQ(conflicts.Wait("a", now), base::Duration::zero());
  EXPECT_EQ(conflicts.Conflicted("a", now), milliseconds(50));
  EXPECT_EQ(conflicts.Wait("a", now), milliseconds(50));
  EXPECT_EQ(conflicts.Wait("b", now), base::Duration::zero());
  for (int i = 0; i < 10; ++i) now += conflicts.Conflicted("a", now);
  EXPECT_EQ(conflicts.Conflicted("a", now), milliseconds(1600));
  EXPECT_EQ(conflicts.Conflicted("b", now), milliseconds(50));
  conflicts.Written();
  EXPECT_EQ(conflicts.Wait("b", now), base::Duration::zero());
}

TEST(SettledPodsTest, KeepsTheLatest) {
  SettledPods settled;
  for (int i = 0; i < 1000; ++i) settled.Add({"uid-" + std::to_string(i), "same"});
  EXPECT_EQ(settled.uids().size(), 256u);
  EXPECT_TRUE(settled.uids().contains("uid-999"));
  EXPECT_FALSE(settled.uids().contains("uid-1"));
}

TEST(ProgressThrottleTest, GivesAsManyPlacesASecondAsAsked) {
  ProgressThrottle throttle(20);
  const base::Instant now{seconds(100)};
  base::Duration last{};
  int at_once = 0;
  for (int i = 0; i < 100; ++i) {
    last = throttle.Reserve(now);
    at_once += last == base::Duration::zero();
  }
  EXPECT_EQ(at_once, 20);
  EXPECT_EQ(last, seconds(4));
  EXPECT_EQ(throttle.Reserve(now + seconds(60)), base::Duration::zero());
}

}  // namespace
}  // namespace hetero::reconcile
