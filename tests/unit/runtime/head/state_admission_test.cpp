// Who may join, and which of two processes of one name is the member.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "runtime/head/state.h"
#include "runtime/head/status_builder.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(StateAdmissionTest, WhoIsNotInTheManifestIsRefusedWithTheReason) {
  struct Case {
    v1::Hello hello;
    std::string reason;
  };
  v1::Hello wrong_type = MakeHello("cpu", 0);
  wrong_type.mutable_identity()->set_role_type("GPUWorker");
  for (const Case& c :
       {Case{MakeHello("tpu", 0), "no CPUWorker or GPUWorker role named 'tpu'"},
        Case{MakeHello("head", 0), "no CPUWorker or GPUWorker role named 'head'"},
        Case{MakeHello("cpu", 10000), "role 'cpu' has no replica 10000"},
        Case{MakeHello("gpu", 1), "role 'gpu' has no replica 1"},
        Case{MakeHello("gpu", 0, 2), "2 local ranks"}, Case{wrong_type, "not a GPUWorker"}}) {
    Drive drive;
    const auto refused = Only<Refuse>(drive.Hello(1, c.hello));
    ASSERT_THAT(refused, SizeIs(1)) << c.reason;
    EXPECT_THAT(refused[0].refused.reason(), HasSubstr(c.reason));
    EXPECT_FALSE(refused[0].refused.superseded());
    EXPECT_THAT(drive.state.record().members, IsEmpty());
  }
}

// The head knows the manifest that the attempt began with; on a cluster somebody has raised the
// number of CPU workers since. They were refused until the job had failed for it.
TEST(StateAdmissionTest, ACpuWorkerBeyondTheManifestsReplicasHasAPlace) {
  Drive drive;
  drive.JoinAll();
  const auto actions = drive.Hello(40, MakeHello("cpu", 7));
  EXPECT_THAT(Only<Refuse>(actions), IsEmpty());
  EXPECT_EQ(LastRoster(actions), "cpu-0 cpu-7");
  const v1::JobStatus status = BuildStatus(drive.state.record(), drive.state.plan());
  EXPECT_EQ(status.roles(0).desired(), 8) << "cpu-1 to cpu-6 are on their way";
  EXPECT_EQ(status.roles(0).registered(), 2);
  drive.Pass(std::chrono::seconds(1), {10, 20, 21, 30, 40});
  drive.Apply(StreamClosed{.stream = 40, .process_gone = true});
  EXPECT_EQ(LastRoster(drive.Hello(41, MakeHello("cpu", 7, 0, 2))), "cpu-0 cpu-7");
}

TEST(StateAdmissionTest, ProcessOfAnotherVersionIsRefusedAndBothVersionsAreNamed) {
  Drive drive;
  for (const char* role : {"cpu", "big"}) {
    v1::Hello hello = MakeHello(role, 0);
    hello.set_version("9.8.7");
    const auto actions = drive.Hello(10, hello);
    const auto refusals = Only<Refuse>(actions);
    ASSERT_THAT(refusals, SizeIs(1)) << role;
    EXPECT_EQ(refusals[0].stream, 10);
    EXPECT_FALSE(refusals[0].refused.superseded());
    const std::string& reason = refusals[0].refused.reason();
    EXPECT_THAT(reason, HasSubstr(role + std::string("-0 is of build 9.8.7 (protocol ")));
    EXPECT_THAT(reason, HasSubstr(absl::StrCat("the head of build ", base::kVersion)));
    EXPECT_THAT(reason, HasSubstr("an image of the same build"));
    const auto notes = Only<Note>(actions);
    ASSERT_THAT(notes, SizeIs(1));
    EXPECT_TRUE(notes[0].warning);
    EXPECT_THAT(notes[0].message, HasSubstr("9.8.7"));
  }
  EXPECT_TRUE(drive.state.record().members.empty());
  v1::Hello same = MakeHello("cpu", 0);
  same.set_version(base::kVersion);
  EXPECT_THAT(Only<Refuse>(drive.Hello(11, same)), IsEmpty());
}

// Two builds of one version once worked together, whatever had changed between them.
TEST(StateAdmissionTest, ProcessOfAnotherProtocolIsRefusedAndBothBuildsAreNamed) {
  Drive drive;
  v1::Hello hello = MakeHello("cpu", 0);
  hello.set_commit("0123456");
  hello.set_protocol("1-00000000");
  const auto refusals = Only<Refuse>(drive.Hello(10, hello));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_EQ(refusals[0].refused.reason(),
            absl::StrCat("cpu-0 is of build ", base::kVersion,
                         "+0123456 (protocol 1-00000000), the head of build ", base::FullVersion(),
                         " (protocol ", handshake::Protocol(),
                         "): give every role of the job an image of the same build"));
}

// All that the job said was "exit code 1; see logs/big-0.log".
TEST(StateAdmissionTest, AJobThatEndsBecauseAMemberWasRefusedSaysWhy) {
  for (const bool waited : {false, true}) {
    Drive drive;
    drive.Hello(10, MakeHello("cpu", 0));
    v1::Hello hello = MakeHello("gpu", 0, 1);
    hello.set_version("0.1.0");
    drive.Hello(21, hello);
    if (waited) {
      drive.Pass(std::chrono::seconds(61), {10});
    } else {
      drive.Apply(FailureReported{"gpu-0", "the process ended: exit code 1; see logs/gpu-0.log"});
    }
    ASSERT_TRUE(drive.state.record().first_failure.has_value());
    const std::string& message = drive.state.record().first_failure->message();
    EXPECT_THAT(message, HasSubstr("refused: gpu-0.1 is of build 0.1.0 "));
    EXPECT_THAT(message, HasSubstr("give every role of the job an image of the same build"));
    if (waited) continue;
    EXPECT_THAT(message, HasSubstr("exit code 1; see logs/gpu-0.log"));
  }
}

TEST(StateAdmissionTest, ARefusalThatIsOverOrOfAStrangerIsNoReason) {
  Drive drive;
  v1::Hello old = MakeHello("big", 0);
  old.set_version("0.1.0");
  drive.Hello(30, old);
  drive.Hello(31, MakeHello("big", 0, 0, 2));
  drive.Hello(32, old);  // while it is there
  drive.Apply(FailureReported{"big-0", "killed by SIGKILL"});
  EXPECT_EQ(drive.state.record().first_failure->message(), "killed by SIGKILL");
}

// Its Hello, field by field: a version, no commit, no protocol.
TEST(StateAdmissionTest, AWorkerOfRelease010IsNotMixedWithThisHead) {
  Drive drive;
  v1::Hello hello;
  hello.mutable_identity()->set_role("cpu");
  hello.mutable_identity()->set_role_type("CPUWorker");
  hello.mutable_identity()->set_incarnation(1'700'000'000'000'000'000);
  hello.mutable_identity()->set_attempt(1);
  hello.set_address("10.0.0.7:7080");
  hello.set_node("node-1");
  hello.set_version("0.1.0");
  hello.set_pid(17);
  const auto refusals = Only<Refuse>(drive.Hello(10, hello));
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_THAT(refusals[0].refused.reason(),
              HasSubstr("cpu-0 is of build 0.1.0 (tells no protocol), the head of build "));
  EXPECT_FALSE(refusals[0].refused.superseded());
  EXPECT_TRUE(drive.state.record().members.empty());
}

TEST(StateAdmissionTest, ProcessOfAnotherCommitJoinsWithAWarning) {
  Drive drive;
  v1::Hello hello = MakeHello("cpu", 0);
  hello.set_version(base::kVersion);
  hello.set_commit("0123456-dirty");
  const auto actions = drive.Hello(10, hello);
  EXPECT_THAT(Only<Refuse>(actions), IsEmpty());
  const auto notes = Only<Note>(actions);
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].message, "joined");
  EXPECT_TRUE(notes[1].warning);
  EXPECT_EQ(notes[1].member, "cpu-0");
  EXPECT_THAT(notes[1].message,
              HasSubstr(absl::StrCat("runs ", base::kVersion, "+0123456-dirty, the head ",
                                     base::kVersion)));

  hello = MakeHello("cpu", 1);
  hello.set_version(base::kVersion);
  hello.set_commit(base::Commit());
  EXPECT_THAT(Only<Note>(drive.Hello(11, hello)), SizeIs(1));
}

TEST(StateAdmissionTest, SmallerIncarnationIsRefusedAsSuperseded) {
  Drive drive;
  drive.Hello(1, MakeHello("cpu", 0, 0, 5));
  const auto refused = Only<Refuse>(drive.Hello(2, MakeHello("cpu", 0, 0, 4)));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].stream, 2);
  EXPECT_TRUE(refused[0].refused.superseded());
}

TEST(StateAdmissionTest, LargerIncarnationReplacesAndCountsAsRestartAndFault) {
  Drive drive;
  drive.JoinAll();
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_samples(100);
  drive.Apply(HeartbeatReceived{10, heartbeat});

  const auto actions = drive.Hello(40, MakeHello("cpu", 0, 0, 2));
  const auto refused = Only<Refuse>(actions);
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_EQ(refused[0].stream, 10);
  EXPECT_TRUE(refused[0].refused.superseded());
  EXPECT_EQ(LastRoster(actions), "cpu-0");  // at a new incarnation
  const MemberRecord& member = drive.state.record().members.at({"cpu", 0, 0});
  EXPECT_EQ(member.restarts, 1);
  EXPECT_EQ(member.earlier.samples(), 100);
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_THAT(drive.state.record().faults[0].what, HasSubstr("cpu-0 was replaced"));

  // The refused process's stream ends later; that is not the new one's end.
  EXPECT_EQ(LastRoster(drive.Apply(StreamClosed{10, true})), "none");
}

TEST(StateAdmissionTest, SameIncarnationIsTheSameProcessDiallingAgain) {
  Drive drive;
  drive.JoinAll();
  v1::Hello again = MakeHello("gpu", 0, 1);
  again.set_generation(1);
  const auto actions = drive.Hello(41, again);
  const auto closed = Only<CloseStream>(actions);
  ASSERT_THAT(closed, SizeIs(1));
  EXPECT_EQ(closed[0].stream, 21);
  const auto sent = Only<Send>(actions);
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_TRUE(sent[0].message.has_welcome());
  EXPECT_TRUE(sent[1].message.has_roster());
  EXPECT_THAT(drive.state.record().faults, IsEmpty());
  EXPECT_EQ(drive.state.record().generation, 1);
}

TEST(StateAdmissionTest, MemberThatMissedTheGenerationGetsItWhenItDialsAgain) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(StreamClosed{21, false});
  const auto sent = Only<Send>(drive.Hello(41, MakeHello("gpu", 0, 1)));
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[1].message.generation().number(), 1);
  EXPECT_EQ(sent[1].message.generation().ranks_size(), 3);
}

}  // namespace
}  // namespace hetero::head
