// What a head finds in a job that it watches: when, for how long, and what its successor knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/long_job.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kWatchedNs = 1'700'000'000'000'000'000;
constexpr double kWorkSeconds = 0.1;  // of work

// A job of three ranks that a single worker keeps waiting, second by second.
class FindingWatchTest : public ::testing::Test {
 protected:
  explicit FindingWatchTest(api::HeteroTrainingJob job = MakeJob()) : job_(std::move(job)) {}

  void Begin() { job_.JoinAll(); }

  // Of each of them ranks wait `wait_share` for the worker's batches. What the head noted.
  std::vector<std::string> Play(int count, double wait_share) {
    std::vector<std::string> notes;
    for (int i = 0; i < count; ++i) {
      for (int tick = 0; tick < 10; ++tick) {
        job_.elapsed += std::chrono::milliseconds(100);
        for (const StreamId stream : {10, 20, 21, 30}) job_.Apply(HeartbeatReceived{stream, {}});
        for (const Note& note : Only<Note>(job_.Apply(Tick{}))) notes.push_back(note.message);
      }
      trained_ += 1;
      waited_ += wait_share;
      for (const StreamId stream : {20, 21, 30}) job_.Tell(stream, Rank());
      v1::Heartbeat worker;
      worker.mutable_counters()->set_busy_seconds(trained_);
      worker.mutable_counters()->set_samples(static_cast<int64_t>(40 * trained_));
      job_.Tell(10, worker);
    }
    return notes;
  }

  const std::vector<HeldFinding>& Found() const { return job_.state->record().findings; }
  v1::Finding TheOne() const {
    return Found().size() == 1 ? Found().front().finding : v1::Finding();
  }

  LongJob job_;

 private:
  v1::Heartbeat Rank() const {
    v1::Heartbeat heartbeat;
    v1::Progress& progress = *heartbeat.mutable_progress();
    const double working = trained_ - waited_;
    progress.set_step(static_cast<int64_t>(working / kWorkSeconds + 0.5));
    progress.set_total_steps(100'000);
    progress.set_digest_covers_job(true);
    progress.set_samples_consumed(progress.step() * 10);
    progress.set_train_seconds(trained_);
    progress.set_first_step_unix_ns(kWatchedNs + 1'000'000'000);
    progress.set_data_wait_percent(100 * waited_ / trained_);
    progress.mutable_phases()->set_forward(working);
    progress.mutable_phases()->set_wait(waited_);
    progress.mutable_waits()->set_workers(waited_);
    return heartbeat;
  }

  double trained_ = 0, waited_ = 0;
};

TEST_F(FindingWatchTest, AJobThatDoesNotWaitHasNone) {
  Begin();
  EXPECT_THAT(Play(120, 0.01), IsEmpty());
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(FindingWatchTest, WhatIsFoundIsToldOnceAndItsCostGrowsWhileItHolds) {
  Begin();
  EXPECT_THAT(Play(15, 0.6), IsEmpty()) << "too short a time to say anything";
  EXPECT_THAT(Play(65, 0.6), ::testing::ElementsAre(HasSubstr("InputBound")));
  ASSERT_THAT(Found(), SizeIs(1));
  EXPECT_EQ(TheOne().rule(), "InputBound");
  EXPECT_TRUE(TheOne().active());
  EXPECT_THAT(TheOne().field(), HasSubstr("cpu"));
  // 48 of 80 seconds were waited away. What could be saved is no more than that.
  const double cost = TheOne().seconds();
  EXPECT_GT(cost, 0.6 * 60);
  EXPECT_LE(cost, 48);
  EXPECT_THAT(Play(100, 0.6), IsEmpty()) << "it is the same";
  EXPECT_NEAR(TheOne().seconds() - cost, 60, 6);
}

TEST_F(FindingWatchTest, WhatIsOverIsKeptAndHoldsNoLonger) {
  Begin();
  Play(60, 0.6);
  ASSERT_TRUE(TheOne().active());
  Play(100, 0);
  EXPECT_EQ(TheOne().rule(), "InputBound");
  EXPECT_FALSE(TheOne().active());
  const double cost = TheOne().seconds();
  Play(60, 0);
  EXPECT_EQ(TheOne().seconds(), cost);
}

TEST_F(FindingWatchTest, TheStatusAndTheReportTellIt) {
  Begin();
  Play(60, 0.6);
  const v1::JobStatus status = BuildStatus(job_.state->record(), job_.state->plan());
  ASSERT_EQ(status.findings_size(), 1);
  EXPECT_EQ(status.findings(0).rule(), "InputBound");
  const insight::Report report = job_.Report();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].message, status.findings(0).message());
  EXPECT_EQ(report.findings[0].remedy, status.findings(0).remedy());
  EXPECT_EQ(report.findings[0].since.substr(0, 11), "2023-11-14T");
}

TEST_F(FindingWatchTest, TheNextHeadKnowsWhatTheLastHasFound) {
  Begin();
  Play(60, 0.6);
  const v1::Finding before = TheOne();
  job_.ReplaceHead();
  ASSERT_THAT(Found(), SizeIs(1));
  EXPECT_FALSE(TheOne().active());
  EXPECT_EQ(TheOne().seconds(), before.seconds());
  EXPECT_EQ(TheOne().first_unix_ns(), before.first_unix_ns());
  job_.JoinAll(1, 1);
  EXPECT_THAT(Play(60, 0.6), ::testing::Not(Contains(HasSubstr("InputBound")))) << "told before";
  EXPECT_TRUE(TheOne().active());
  EXPECT_GT(TheOne().seconds(), before.seconds());
}

// Twelve seconds are no window, and all that there is when the job ends.
TEST_F(FindingWatchTest, AShortJobIsJudgedAtItsEnd) {
  Begin();
  Play(12, 0.6);
  EXPECT_THAT(Found(), IsEmpty());
  v1::Finished finished;
  finished.set_ok(true);
  std::vector<std::string> notes;
  for (const StreamId stream : {20, 21, 30, 10}) {
    for (const Note& note : Only<Note>(job_.Apply(FinishedReceived{stream, finished}))) {
      notes.push_back(note.message);
    }
  }
  ASSERT_TRUE(job_.state->ended());
  EXPECT_THAT(notes, Contains(HasSubstr("InputBound")));
  EXPECT_EQ(TheOne().rule(), "InputBound");
  EXPECT_TRUE(TheOne().active());
  EXPECT_GT(TheOne().seconds(), 0);
  EXPECT_LE(TheOne().seconds(), 7.2);
}

api::HeteroTrainingJob JobWith(const api::InsightRule& rule) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.insight = api::Insight{.rules = {rule}};
  return job;
}

class IgnoringTest : public FindingWatchTest {
 protected:
  IgnoringTest()
      : FindingWatchTest(JobWith({.name = "InputBound", .action = api::RuleAction::kIgnore})) {}
};

TEST_F(IgnoringTest, ARuleThatTheManifestIgnoresIsNotAsked) {
  Begin();
  EXPECT_THAT(Play(60, 0.6), IsEmpty());
}

class ThresholdTest : public FindingWatchTest {
 protected:
  ThresholdTest()
      : FindingWatchTest(JobWith({.name = "InputBound",
                                  .action = api::RuleAction::kReport,
                                  .thresholds = {{.name = "waitPercent", .value = 70}}})) {}
};

TEST_F(ThresholdTest, TheManifestSaysFromWhereOnARuleFinds) {
  Begin();
  EXPECT_THAT(Play(60, 0.6), IsEmpty());
  EXPECT_THAT(Play(80, 0.8), Contains(HasSubstr("InputBound")));
}

}  // namespace
}  // namespace hetero::head
