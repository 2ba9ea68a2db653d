#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/state.h"
#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const v1::Failure& FirstFailure(const Drive& drive) {
  return drive.state.record().first_failure.value();
}

v1::Heartbeat WithBadSamples(std::vector<int64_t> ids) {
  v1::Heartbeat heartbeat;
  for (const int64_t id : ids) {
    v1::BadSampleReport* sample = heartbeat.add_bad_samples();
    sample->set_sample_id(id);
    sample->set_reason("truncated JPEG");
  }
  return heartbeat;
}

TEST(StateFailureTest, LastWordOfAFailedTrainerIsTheFailure) {
  Drive drive;
  drive.JoinAll();
  EXPECT_THAT(Stopped(drive.Finish(20, false, false, "loss is not finite at step 3")),
              UnorderedElementsAre(10, 21, 30));
  EXPECT_EQ(FirstFailure(drive).member(), "gpu-0.0");
  EXPECT_EQ(FirstFailure(drive).message(), "loss is not finite at step 3");
  drive.Finish(21, false, false, "peer closed the connection");
  drive.Finish(30, true, true);
  EXPECT_THAT(Only<EndJob>(drive.Finish(10, true, true)), SizeIs(1));
  EXPECT_EQ(FirstFailure(drive).member(), "gpu-0.0");
  EXPECT_EQ(drive.state.record().state, v1::JobStatus::FAILED);
}

TEST(StateFailureTest, TheRankThatVanishedIsNamedAndNotThePeerThatNoticed) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{21, false});
  drive.Finish(20, false, false, "peer closed the connection");
  EXPECT_EQ(FirstFailure(drive).member(), "gpu-0.1");
  EXPECT_THAT(FirstFailure(drive).message(), HasSubstr("gpu-0.0: peer closed the connection"));
}

TEST(StateFailureTest, LaunchersReportOfADeadProcessBeatsThePeerThatNoticed) {
  Drive drive;
  drive.JoinAll();
  drive.Finish(20, false, false, "peer closed the connection");
  drive.Apply(FailureReported{"gpu-0.1", "killed by signal 9"});
  EXPECT_EQ(FirstFailure(drive).member(), "gpu-0.1");
  EXPECT_THAT(FirstFailure(drive).message(), HasSubstr("killed by signal 9"));
}

TEST(StateFailureTest, ExitCodeOfWhoHadItsSayChangesNothing) {
  for (const char* process : {"gpu-0.0", "gpu-0"}) {  // one of two ranks, one with both
    Drive drive;
    drive.JoinAll();
    drive.Finish(20, false, false, "out of memory");
    drive.Apply(FailureReported{process, "exit code 1"});
    EXPECT_EQ(FirstFailure(drive).message(), "out of memory") << process;
  }
}

TEST(StateFailureTest, LauncherReportedFailureFailsTheJob) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(FailureReported{"big-0", "killed by signal 11"});
  EXPECT_EQ(FirstFailure(drive).member(), "big-0");
  EXPECT_EQ(FirstFailure(drive).message(), "killed by signal 11");
}

TEST(StateFailureTest, TrainerLostBeforeTheFirstGenerationIsWaitedFor) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Pass(seconds(6), {10});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  drive.Hello(21, MakeHello("gpu", 0, 1));
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(30, MakeHello("big", 0))), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(22, MakeHello("gpu", 0, 0, 2))), SizeIs(1));
}

TEST(StateFailureTest, StartupDeadlineNamesTheMissingMembersAndTheirLastWords) {
  Drive drive;
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Finish(10, false, false, "/data does not exist");
  drive.Pass(seconds(60), {20});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  drive.Pass(milliseconds(100), {20});
  EXPECT_THAT(
      FirstFailure(drive).message(),
      AllOf(HasSubstr("startupDeadlineSeconds (60 s)"),
            HasSubstr("cpu-0 (/data does not exist), gpu-0.1, big-0;"), Not(HasSubstr("gpu-0.0"))));
}

TEST(StateFailureTest, StartupDeadlineNamesAtMostFive) {
  api::HeteroTrainingJob job = MakeJob();
  job.spec.roles[3].replicas = 9;
  Drive drive(job);
  drive.Pass(milliseconds(60100));
  EXPECT_THAT(FirstFailure(drive).message(),
              HasSubstr("cpu-0, gpu-0.0, gpu-0.1, big-0, big-1 and 7 more"));
}

TEST(StateFailureTest, BadSamplesAreCountedOncePerIdOverAllRanks) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(HeartbeatReceived{20, WithBadSamples({17, 40})});
  drive.Apply(HeartbeatReceived{21, WithBadSamples({40, 17})});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  drive.Apply(HeartbeatReceived{21, WithBadSamples({99})});
  EXPECT_THAT(FirstFailure(drive).message(),
              AllOf(HasSubstr("3 bad samples"), HasSubstr("spec.dataset.maxBadSamples (2)"),
                    HasSubstr("17 (truncated JPEG), 40 (truncated JPEG), 99 (truncated JPEG)")));
}

TEST(StateFailureTest, FailedCpuWorkerIsAFaultAndLeavesTheRoster) {
  Drive drive;
  drive.JoinAll();
  EXPECT_EQ(LastRoster(drive.Finish(10, false, false, "disk error")), "");
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_EQ(drive.state.record().faults[0].what, "cpu-0 failed: disk error");
}

// With one rank nobody else ran into a deadline of his own.
TEST(StateFailureTest, AReplacementThatNeverOpensItsDatasetFailsTheJobByName) {
  Drive drive;
  drive.JoinAll();
  drive.Pass(std::chrono::seconds(10), {10, 20, 21, 30});
  drive.Apply(HelloReceived{40, MakeHello("big", 0, 0, 2)});
  drive.Pass(std::chrono::seconds(60), {10, 20, 21, 40});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  drive.Pass(std::chrono::milliseconds(200), {10, 20, 21, 40});
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(FirstFailure(drive).member(), "big-0");
  EXPECT_THAT(
      FirstFailure(drive).message(),
      HasSubstr("its dataset is not open after spec.runPolicy.startupDeadlineSeconds (60 s)"));
}

TEST(StateFailureTest, AReplacementThatOpensItsDatasetInTimeIsWaitedFor) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(HelloReceived{40, MakeHello("big", 0, 0, 2)});
  drive.Pass(std::chrono::seconds(55), {10, 20, 21, 40});
  EXPECT_THAT(Only<OpenGeneration>(drive.Apply(ReadyReceived{40, MakeReady(100)})), SizeIs(1));
  drive.Pass(std::chrono::seconds(60), {10, 20, 21, 40});
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
}

TEST(StateFailureTest, ResentListsAreNotCountedTwice) {
  Drive drive;
  drive.JoinAll();
  v1::Heartbeat heartbeat;
  v1::EvaluationResult* evaluation = heartbeat.add_evaluations();
  evaluation->set_epoch(1);
  evaluation->set_step(235);
  heartbeat.add_losses()->set_step(5);
  v1::FaultReport* fault = heartbeat.add_faults();
  fault->set_unix_ns(1'000'000'000);
  fault->set_what("ticket issued again");
  drive.Apply(HeartbeatReceived{20, heartbeat});
  drive.Apply(HeartbeatReceived{20, heartbeat});
  EXPECT_THAT(drive.state.record().evaluations, SizeIs(1));
  EXPECT_THAT(drive.state.record().loss_curve.points(), SizeIs(1));
  EXPECT_THAT(drive.state.record().faults, SizeIs(1));
}

}  // namespace
}  // namespace hetero::head
