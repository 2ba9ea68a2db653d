#include "runtime/head/member_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/job_fixture.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr base::Duration kRedialGrace = milliseconds(500);

// The job of job_fixture.h, which is missed after 5 s, in generation 1.
class MemberTrackerTest : public ::testing::Test {
 protected:
  MemberTrackerTest() : plan_(MakeJob().spec) {
    record_.job = MakeJob();
    record_.generation = 1;
    record_.ranks = {{"gpu", 0, 0}, {"gpu", 0, 1}, {"big", 0, 0}};
  }
  static Moment At(base::Duration passed) {
    return {base::Instant(std::chrono::hours(1)) + passed, base::WallTime(seconds(1'700'000'000))};
  }
  MemberRecord* Join(StreamId stream, const v1::Hello& hello, base::Duration passed = {}) {
    return members_.Join({stream, hello}, At(passed));
  }

  RolePlan plan_;
  JobRecord record_;
  Outbox outbox_;
  JobEnding ending_{{.trainers = seconds(2), .workers = seconds(2)}, record_, outbox_};
  MemberTracker members_{kRedialGrace, PeerRoles{base::TlsOptions{.plain_text = true}},
                         plan_,        record_,
                         ending_,      outbox_};
};

TEST_F(MemberTrackerTest, AMemberHasItsNameRankAndStream) {
  MemberRecord* trainer = Join(20, MakeHello("gpu", 0, 1));
  ASSERT_NE(trainer, nullptr);
  EXPECT_EQ(trainer->name, "gpu-0.1");
  EXPECT_EQ(trainer->rank, 1);
  EXPECT_EQ(members_.Find(20), trainer);
  EXPECT_FALSE(Join(10, MakeHello("cpu", 0))->trainer());
  EXPECT_EQ(members_.Find(11), nullptr);
  EXPECT_EQ(Join(20, MakeHello("gpu", 0, 0)), nullptr) << "one stream, two members";
}

TEST_F(MemberTrackerTest, ARefusedProcessIsNoMember) {
  EXPECT_EQ(Join(9, MakeHello("cook", 0)), nullptr);
  EXPECT_THAT(Only<Refuse>(outbox_.Take()), SizeIs(1));
  EXPECT_THAT(record_.members, IsEmpty());
}

TEST_F(MemberTrackerTest, OfASilentMemberTheFaultIsOpenUntilItIsHeardAgain) {
  MemberRecord* worker = Join(10, MakeHello("cpu", 0));
  members_.CheckSilence(At(seconds(5)));
  EXPECT_FALSE(worker->lost);
  members_.CheckSilence(At(milliseconds(5001)));
  EXPECT_TRUE(worker->lost);
  members_.CheckSilence(At(seconds(6)));
  ASSERT_THAT(record_.faults, SizeIs(1));
  EXPECT_THAT(record_.faults[0].what, HasSubstr("cpu-0 was lost: silent for more than 5 s"));
  EXPECT_FALSE(record_.faults[0].recovery_seconds.has_value());
  members_.Hear(*worker, At(milliseconds(7001)));
  EXPECT_FALSE(worker->lost);
  EXPECT_NEAR(*record_.faults[0].recovery_seconds, 2, 1e-9);
}

TEST_F(MemberTrackerTest, ThePauseOfTheHeadIsExcused) {
  const MemberRecord* worker = Join(10, MakeHello("cpu", 0));
  members_.Excuse(seconds(60));
  members_.CheckSilence(At(seconds(64)));
  EXPECT_FALSE(worker->lost);
}

TEST_F(MemberTrackerTest, ABrokenStreamHasTheRedialGraceOfACpuWorker) {
  const MemberRecord* worker = Join(10, MakeHello("cpu", 0));
  members_.Disconnect({10, false}, At(seconds(0)));
  EXPECT_EQ(members_.Find(10), nullptr);
  members_.CheckSilence(At(kRedialGrace));
  EXPECT_FALSE(worker->lost);
  members_.CheckSilence(At(kRedialGrace + milliseconds(1)));
  EXPECT_TRUE(worker->lost);
}

TEST_F(MemberTrackerTest, WhoHasSaidItsLastWordIsNotLost) {
  MemberRecord* worker = Join(10, MakeHello("cpu", 0));
  worker->finished.emplace().set_ok(true);
  members_.Lose(*worker, "its process ended", At(seconds(1)));
  EXPECT_FALSE(worker->lost);
  EXPECT_THAT(record_.faults, IsEmpty());
}

TEST_F(MemberTrackerTest, ALostRankOfAnInputOnlyJobFailsIt) {
  record_.input_only = true;
  Join(30, MakeHello("big", 0));
  members_.Disconnect({30, true}, At(seconds(1)));
  EXPECT_TRUE(ending_.begun());
  EXPECT_EQ(record_.first_failure->member(), "big-0");
}

TEST_F(MemberTrackerTest, MembersAreFoundByNameBeforeTheyHaveJoined) {
  const auto place = [&](const char* name) { return members_.PlaceOf(name, 1, At(seconds(0))); };
  ASSERT_NE(place("gpu-0.1"), nullptr);
  EXPECT_EQ(place("gpu-0.1")->rank, 1);
  EXPECT_EQ(place("gpu-0.1")->name, "gpu-0.1");
  ASSERT_NE(place("cpu-0"), nullptr);
  EXPECT_FALSE(place("cpu-0")->trainer());
  EXPECT_EQ(place("gpu-0.2"), nullptr);
  EXPECT_EQ(place("cook-0"), nullptr);
}

}  // namespace
}  // namespace hetero::head
