#include "tests/fakes/head/play.h"

#include <gtest/gtest.h>

namespace hetero::testing {
namespace {

using std::chrono::milliseconds;

// A job of one head, two CPU workers and two trainers, all of whose pods run.
class PlayTest : public ::testing::Test {
 protected:
  PlayTest() {
    scene_.attempt = 1;
    scene_.roles = {{"head", "Head", 1}, {"cpu", "CPUWorker", 2, 2}, {"gpu", "GPUWorker", 2, 2}};
    for (const char* role : {"head", "cpu", "gpu"}) {
      for (int index = 0; index < (role == std::string("head") ? 1 : 2); ++index) {
        PodView pod{.role = role, .index = index, .attempt = 1, .running = true};
        pod.name = "job-" + pod.member();
        pod.uid = pod.member() + "/1";
        pod.incarnation = 1;
        scene_.pods.push_back(pod);
      }
    }
  }

  void Write(const std::string& script) { script_ = script; }
  Play::Action Step(milliseconds later = milliseconds(0)) {
    now_ += later;
    return play_.Step(scene_, ParseScript(script_, scene_.attempt), now_);
  }
  PodView& Pod(const std::string& member) {
    for (PodView& pod : scene_.pods) {
      if (pod.member() == member) return pod;
    }
    throw std::out_of_range(member);
  }
  v1::JobStatus::State state() const { return play_.status().state(); }

  Play::Scene scene_;
  std::string script_;
  base::Instant now_{std::chrono::seconds(100)};
  Play play_;
};

TEST_F(PlayTest, FromRegistrationToTheVerdict) {
  Write(R"({"steps": 5, "stepMillis": 10, "result": {"loss": 0.5}})");
  EXPECT_TRUE(Step().publish);
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  EXPECT_EQ(play_.generation(), 1);
  EXPECT_EQ(play_.status().roles(1).registered(), 2);
  Step(milliseconds(20));
  EXPECT_EQ(play_.step(), 2);
  const Play::Action last = Step(milliseconds(100));
  EXPECT_TRUE(last.ended && last.publish);
  EXPECT_EQ(state(), v1::JobStatus::SUCCEEDED);
  EXPECT_EQ(play_.status().result().loss(), 0.5);
  EXPECT_EQ(play_.status().result().steps(), 5);
  EXPECT_EQ(play_.verdict(ParseScript(script_, 1), "job").result.loss, 0.5);
}

TEST_F(PlayTest, BeginsWithWhatItCannotDoWithout) {
  scene_.roles[1].min_replicas = 1;
  Write(R"({"neverRegister": ["cpu-0"]})");
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
}

TEST_F(PlayTest, WaitsForTheMemberThatNeverRegistersAndNamesIt) {
  Write(R"({"neverRegister": ["cpu-1"]})");
  Step();
  Step(milliseconds(1000));
  EXPECT_EQ(state(), v1::JobStatus::WAITING);
  EXPECT_EQ(play_.status().roles(0).missing(0), "cpu-1");
  Write("{}");
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING) << "the script may be changed while it plays";
}

TEST_F(PlayTest, AReplacedTrainerOpensOneGeneration) {
  Write(R"({"steps": 1000000})");
  Step();
  v1::ExitReport report;
  report.set_role("gpu");
  report.set_index(1);
  play_.OnExit(report);
  Step();
  EXPECT_EQ(state(), v1::JobStatus::WAITING);
  EXPECT_EQ(play_.generation(), 1);
  Pod("gpu-1").uid = "gpu-1/2";
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  EXPECT_EQ(play_.generation(), 2);
}

TEST_F(PlayTest, CpuWorkersComeAndGoWithoutANewGeneration) {
  Write(R"({"steps": 1000000})");
  Step();
  Pod("cpu-1").running = false;
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  EXPECT_EQ(play_.status().roles(0).registered(), 1);
  Pod("cpu-1").uid = "cpu-1/2";
  Pod("cpu-1").running = true;
  Step();
  EXPECT_EQ(play_.generation(), 1);
}

TEST_F(PlayTest, AnotherHeadGoesOnInTheSameGeneration) {
  Write(R"({"steps": 1000000, "stepMillis": 10})");
  Step();
  Step(milliseconds(50));
  Pod("head-0").running = false;
  EXPECT_FALSE(Step(milliseconds(50)).publish);
  Pod("head-0").uid = "head-0/2";
  Pod("head-0").running = true;
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  EXPECT_EQ(play_.generation(), 1);
  EXPECT_EQ(play_.step(), 5);
}

TEST_F(PlayTest, HoldsUntilItMayGoOn) {
  Write(R"({"steps": 8, "stepMillis": 10, "holdAtStep": 4})");
  Step();
  Step(milliseconds(1000));
  EXPECT_EQ(play_.step(), 4);
  scene_.go_on = true;
  Step(milliseconds(1000));
  EXPECT_EQ(state(), v1::JobStatus::SUCCEEDED);
}

TEST_F(PlayTest, StallsInEveryAttempt) {
  Write(R"({"steps": 8, "stepMillis": 10, "stallAtStep": 3})");
  for (int attempt = 1; attempt <= 2; ++attempt) {
    scene_.attempt = attempt;
    Step();
    Step(milliseconds(1000));
    EXPECT_EQ(play_.step(), 3);
    EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  }
}

TEST_F(PlayTest, LosesAMemberOnce) {
  Write(R"({"steps": 1000000, "stepMillis": 10, "loseMember": "gpu-1", "loseAtStep": 2})");
  Step();
  Step(milliseconds(1000));
  EXPECT_EQ(play_.step(), 2);
  Step(milliseconds(10));
  EXPECT_EQ(state(), v1::JobStatus::WAITING);
  EXPECT_FALSE(play_.status().members(3).connected());
  EXPECT_TRUE(play_.status().members(3).lost());
  EXPECT_EQ(play_.status().members(3).incarnation(), 1);
  Pod("gpu-1").uid = "gpu-1/2";
  Pod("gpu-1").incarnation = 2;
  Step();
  EXPECT_EQ(state(), v1::JobStatus::RUNNING);
  EXPECT_FALSE(play_.status().members(3).lost());
  v1::ExitReport late;
  late.set_role("gpu");
  late.set_index(1);
  late.set_incarnation(1);
  play_.OnExit(late);
  Step(milliseconds(50));
  EXPECT_EQ(play_.step(), 7) << "it was not this process that ended";
}

TEST_F(PlayTest, KillsAPodOnceBeforeTheJobMayEnd) {
  Write(R"({"steps": 6, "stepMillis": 10, "killMember": "gpu-0", "killAtStep": 3})");
  Step();
  const Play::Action action = Step(milliseconds(1000));
  EXPECT_EQ(action.kill_pod, "job-gpu-0");
  EXPECT_EQ(action.kill_uid, "gpu-0/1");
  EXPECT_FALSE(action.ended);
  Pod("gpu-0").running = false;
  Step(milliseconds(1000));
  EXPECT_EQ(play_.step(), 3);
  Pod("gpu-0").uid = "gpu-0/2";
  Pod("gpu-0").running = true;
  EXPECT_TRUE(Step().kill_pod.empty());
  Step(milliseconds(1000));
  EXPECT_EQ(state(), v1::JobStatus::SUCCEEDED);
}

TEST_F(PlayTest, SizingTroubleAndWorkersBeyondTheManifest) {
  Write(R"({"steps": 1000000, "needed": {"cpu": 3}, "checkpointProblem": "disk full"})");
  PodView more = Pod("cpu-1");
  more.index = 2;
  more.uid = "cpu-2/1";
  scene_.pods.push_back(more);
  Step();
  EXPECT_EQ(play_.status().roles(0).registered(), 3);
  ASSERT_EQ(play_.status().sizing_size(), 1);
  EXPECT_EQ(play_.status().sizing(0).role(), "cpu");
  EXPECT_EQ(play_.status().sizing(0).needed_replicas(), 3);
  EXPECT_EQ(play_.status().checkpoint_problem(), "disk full");
}

TEST_F(PlayTest, FindingsFromTheFirstStepOn) {
  Write(R"({"steps": 1000, "findings": [
      {"rule": "InputBound", "remedy": "more", "seconds": 2.5, "since": "2026-01-01T00:00:00Z"},
      {"rule": "SlowWorker", "member": "cpu-1", "dollars": 0.5, "active": false}]})");
  Step();
  EXPECT_EQ(play_.status().findings_size(), 0);
  Step(milliseconds(1000));
  ASSERT_EQ(play_.status().findings_size(), 2);
  const v1::Finding& first = play_.status().findings(0);
  EXPECT_EQ(first.rule(), "InputBound");
  EXPECT_EQ(first.remedy(), "more");
  EXPECT_EQ(first.seconds(), 2.5);
  EXPECT_FALSE(first.has_dollars());
  EXPECT_EQ(first.first_unix_ns(), int64_t{1'767'225'600} * 1'000'000'000);
  EXPECT_TRUE(first.active());
  EXPECT_EQ(play_.status().findings(1).member(), "cpu-1");
  EXPECT_EQ(play_.status().findings(1).dollars(), 0.5);
  EXPECT_FALSE(play_.status().findings(1).active());
}

TEST_F(PlayTest, SilenceAndAnUntoldEnd) {
  Write(R"({"steps": 1000, "stepMillis": 1, "silentAtStep": 5})");
  Step();
  EXPECT_FALSE(Step(milliseconds(700)).publish);
  Write(R"({"steps": 800, "stepMillis": 1, "tellEnd": false})");
  const Play::Action action = Step(milliseconds(1000));
  EXPECT_TRUE(action.ended);
  EXPECT_FALSE(action.publish);
  EXPECT_TRUE(play_.verdict(ParseScript(script_, 1), "job").succeeded);
}

TEST(Script, AttemptsReplaceSingleKeys) {
  const char* text =
      R"({"steps": 7, "verdict": "Failed", "attempts": {"2": {"verdict": "Succeeded"}}})";
  EXPECT_FALSE(ParseScript(text, 1).succeeds);
  EXPECT_TRUE(ParseScript(text, 2).succeeds);
  EXPECT_EQ(ParseScript(text, 2).steps, 7);
  EXPECT_EQ(ParseScript("no JSON", 1).steps, 10);
}

}  // namespace
}  // namespace hetero::testing
