// Members that see different data.
#include "runtime/head/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/head/state.h"
#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Readiness, DifferencesNameWhatAndWithWhom) {
  const v1::Ready theirs = MakeReady(1500);
  EXPECT_EQ(Differences(theirs, theirs, "gpu-0"), "");
  EXPECT_EQ(Differences(MakeReady(1499), theirs, "gpu-0"), "has 1499 training samples, gpu-0 1500");
  v1::Ready mine = theirs;
  mine.set_fingerprint("other");
  mine.set_validation_samples(10);
  EXPECT_EQ(Differences(mine, theirs, "gpu-0"),
            "has other training files (fingerprint other, gpu-0 print of 1500); "
            "has 10 validation samples, gpu-0 0");
  mine = theirs;
  (*mine.mutable_environment())["libjpeg-turbo"] = "2.1.2";
  (*mine.mutable_environment())["plugin /a.so"] = "7 bytes";
  EXPECT_EQ(Differences(mine, theirs, "gpu-0"),
            "works with libjpeg-turbo 2.1.2, gpu-0 with 2.1.5; "
            "works with plugin /a.so 7 bytes, gpu-0 with none");
  mine = theirs;
  (*mine.mutable_environment())["versions of training objects"] = "0123456789abcdef";
  EXPECT_EQ(Differences(mine, theirs, "gpu-0"),
            "finds other versions of training objects than gpu-0: an object was written over since "
            "the job began");
}

TEST(Readiness, NoGenerationOpensBeforeEveryRankHasOpenedItsDataset) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(21, MakeHello("gpu", 0, 1));
  EXPECT_THAT(Only<OpenGeneration>(drive.Apply(HelloReceived{30, MakeHello("big", 0)})), IsEmpty());
  EXPECT_THAT(Only<OpenGeneration>(drive.Pass(seconds(4), {10, 20, 21, 30})), IsEmpty());
  const auto opened = Only<OpenGeneration>(drive.Apply(ReadyReceived{30, MakeReady(100)}));
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_EQ(opened[0].generation.number(), 1);
}

// They would make another number of steps each, and wait for each other without end.
TEST(Readiness, RanksThatSeeDatasetsOfDifferentSizeNeverBegin) {
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(20, MakeHello("gpu", 0, 0), MakeReady(1500));
  drive.Hello(21, MakeHello("gpu", 0, 1), MakeReady(1500));
  const auto actions = drive.Hello(30, MakeHello("big", 0), MakeReady(1499));
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(drive.state.record().first_failure->member(), "big-0");
  EXPECT_THAT(drive.state.record().first_failure->message(),
              HasSubstr("it has 1499 training samples, gpu-0.0 1500"));
}

TEST(Readiness, AWorkerThatJoinsLaterWithOtherDataIsNamedAndTheJobGoesOnWithoutIt) {
  Drive drive;
  drive.JoinAll();
  const auto actions = drive.Hello(11, MakeHello("cpu", 1), MakeReady(99));
  EXPECT_EQ(LastRoster(actions), "none");  // nobody is told of it
  const auto sent = Only<Send>(actions);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().stream, 11);
  EXPECT_THAT(sent.back().message.not_admitted().reason(),
              AllOf(HasSubstr("cpu-1"), HasSubstr("99 training samples, gpu-0.0 100")));
  const JobRecord& record = drive.state.record();
  EXPECT_FALSE(record.first_failure.has_value());
  ASSERT_THAT(record.faults, SizeIs(1));
  EXPECT_THAT(record.faults[0].what, HasSubstr("cpu-1 does not see the job's data"));

  // The same process again, after its connection broke, is no news.
  drive.Apply(StreamClosed{11, false});
  EXPECT_THAT(LastRoster(drive.Hello(12, MakeHello("cpu", 1), MakeReady(99))), "none");
  EXPECT_THAT(record.faults, SizeIs(1));
  // A new one with the job's data takes part.
  EXPECT_EQ(LastRoster(drive.Hello(13, MakeHello("cpu", 1, 0, 2))), "cpu-0 cpu-1");
}

// Trainers have no interpreters: what these run with is compared among CPU workers.
TEST(Readiness, AWorkerWithAnotherPythonTakesNoPart) {
  v1::Ready first = MakeReady(100), other = MakeReady(100);
  (*first.mutable_python())["numpy"] = "2.0.2";
  (*other.mutable_python())["numpy"] = "2.1.0";
  Drive drive;
  drive.Hello(10, MakeHello("cpu", 0), first);
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(21, MakeHello("gpu", 0, 1));
  drive.Hello(30, MakeHello("big", 0));
  const auto sent = Only<Send>(drive.Hello(11, MakeHello("cpu", 1), other));
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().message.not_admitted().reason(),
            "cpu-1 would make other samples: it works with numpy 2.1.0, cpu-0 with 2.0.2; run the "
            "same image in every CPU worker");
  EXPECT_FALSE(drive.state.record().first_failure.has_value());
  EXPECT_EQ(LastRoster(drive.Hello(13, MakeHello("cpu", 1, 0, 2), first)), "cpu-0 cpu-1");
}

// It may say anything, as often as it likes: its process was judged.
TEST(Readiness, AWorkerThatKeepsSayingSomethingElseIsOneFault) {
  Drive drive;
  drive.JoinAll();
  v1::Ready endless = MakeReady(99);
  endless.set_fingerprint(std::string(1 << 20, 'f'));
  for (int i = 0; i < 1000; ++i) {
    (*endless.mutable_environment())["key " + std::to_string(i)] = std::string(1000, 'v');
  }
  drive.Hello(11, MakeHello("cpu", 1), MakeReady(100));
  std::string roster;
  for (int i = 0; i < 1000; ++i) {
    const std::string told =
        LastRoster(drive.Apply(ReadyReceived{11, i % 2 ? MakeReady(100) : endless}));
    if (told != "none") roster = told;
  }
  EXPECT_EQ(roster, "cpu-0");
  ASSERT_THAT(drive.state.record().faults, SizeIs(1));
  EXPECT_LT(drive.state.record().faults[0].what.size(), 4096u);
  EXPECT_THAT(drive.state.record().faults[0].what, HasSubstr("99 training samples, gpu-0.0 100"));
}

TEST(Readiness, AWorkerThatTheJobNeedsIsNamedWithItsDataWhenTheStartTakesTooLong) {
  Drive drive;
  drive.Hello(20, MakeHello("gpu", 0, 0));
  drive.Hello(21, MakeHello("gpu", 0, 1));
  drive.Hello(30, MakeHello("big", 0));
  drive.Hello(10, MakeHello("cpu", 0), MakeReady(99));
  drive.Pass(seconds(61), {10, 20, 21, 30});
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_THAT(drive.state.record().first_failure->message(),
              HasSubstr("cpu-0 (does not see the job's data: it has 99 training samples"));
}

TEST(Readiness, ARankThatComesBackWithOtherDataFailsTheJobByName) {
  Drive drive;
  drive.JoinAll();
  const auto actions = drive.Hello(40, MakeHello("gpu", 0, 0, 2), MakeReady(99));
  EXPECT_THAT(Only<OpenGeneration>(actions), IsEmpty());
  ASSERT_TRUE(drive.state.record().first_failure.has_value());
  EXPECT_THAT(drive.state.record().first_failure->message(),
              HasSubstr("it has 99 training samples, the process before it 100"));
}

// Of a job that has not begun, a process that was replaced is no measure.
TEST(Readiness, AFirstRankThatWasReplacedBeforeTheStartDecidesNothing) {
  Drive drive;
  drive.Hello(20, MakeHello("gpu", 0, 0), MakeReady(99));
  drive.Hello(10, MakeHello("cpu", 0));
  drive.Hello(40, MakeHello("gpu", 0, 0, 2));
  drive.Hello(21, MakeHello("gpu", 0, 1));
  EXPECT_THAT(Only<OpenGeneration>(drive.Hello(30, MakeHello("big", 0))), SizeIs(1));
}

}  // namespace
}  // namespace hetero::head
