#include "runtime/process/membership.h"

#include <gtest/gtest.h>

#include <thread>

namespace hetero::process {
namespace {

constexpr base::Duration kLong = std::chrono::seconds(20);

TEST(Membership, HandsOnWhatTheHeadSaid) {
  Membership membership{std::stop_token()};
  const head::Member::Callbacks callbacks = membership.MakeCallbacks();
  std::jthread head([&] {
    v1::Welcome welcome;
    welcome.set_job_json("{}");
    callbacks.on_welcome(welcome);
    v1::Generation generation;
    generation.set_number(1);
    callbacks.on_generation(generation);
  });
  EXPECT_EQ(membership.WaitForWelcome(kLong)->job_json(), "{}");
  EXPECT_EQ(membership.WaitForGeneration(0, kLong)->generation.number(), 1);
}

TEST(Membership, ANewerGenerationEndsTheOneBefore) {
  Membership membership{std::stop_token()};
  const head::Member::Callbacks callbacks = membership.MakeCallbacks();
  v1::Generation generation;
  generation.set_number(1);
  callbacks.on_generation(generation);
  const auto first = membership.WaitForGeneration(0, kLong);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->over.stop_requested());
  generation.set_number(4);
  callbacks.on_generation(generation);
  EXPECT_TRUE(first->over.stop_requested());
  const auto second = membership.WaitForGeneration(1, kLong);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->generation.number(), 4);
  EXPECT_FALSE(second->over.stop_requested());
}

TEST(Membership, ACompletedJobHasNoFurtherGeneration) {
  Membership membership{std::stop_token()};
  v1::Command command;
  command.set_kind(v1::Command::COMPLETE);
  membership.MakeCallbacks().on_command(command);
  EXPECT_TRUE(absl::IsOutOfRange(membership.WaitForGeneration(1, kLong).status()));
}

TEST(Membership, AGenerationBringsItsCpuWorkers) {
  Membership membership{std::stop_token()};
  int workers = -1;
  const head::Member::Callbacks callbacks = membership.MakeCallbacks(
      [&workers](const v1::Roster& roster) { workers = roster.cpu_workers_size(); });
  v1::Generation generation;
  generation.set_number(1);
  generation.add_cpu_workers()->set_address("unix:/a");
  callbacks.on_generation(generation);
  EXPECT_EQ(workers, 1);
}

TEST(Membership, AStopCommandEndsEveryWait) {
  Membership membership{std::stop_token()};
  v1::Command command;
  command.set_kind(v1::Command::STOP);
  membership.MakeCallbacks().on_command(command);
  EXPECT_TRUE(absl::IsCancelled(membership.WaitForWelcome(kLong).status()));
  membership.WaitForStop();
  EXPECT_TRUE(membership.refusal().ok());
}

TEST(Membership, TheProcesssOwnStopCountsToo) {
  std::stop_source process;
  Membership membership(process.get_token());
  process.request_stop();
  EXPECT_TRUE(absl::IsCancelled(membership.WaitForGeneration(0, kLong).status()));
}

TEST(Membership, AMemberThatLeavesAloneIsNotStopped) {
  std::stop_source process;
  Membership membership(process.get_token(), /*leaves=*/true);
  process.request_stop();
  EXPECT_TRUE(membership.leave_token().stop_requested());
  EXPECT_FALSE(membership.stop_token().stop_requested());
  EXPECT_TRUE(absl::IsAborted(membership.WaitForWelcome(kLong).status()));
  EXPECT_TRUE(absl::IsAborted(membership.WaitForGeneration(0, kLong).status()));
}

TEST(Membership, NobodyHasLeftWhoWasNotAskedTo) {
  std::stop_source own;
  const Membership membership(own.get_token(), /*leaves=*/true);
  const absl::Status aborted = absl::AbortedError("nobody can produce batch 3");
  EXPECT_EQ(membership.EndingWith(aborted), absl::InternalError("nobody can produce batch 3"));
  EXPECT_EQ(membership.EndingWith(absl::CancelledError("stop")), absl::CancelledError("stop"));
  EXPECT_TRUE(membership.EndingWith(absl::OkStatus()).ok());
  own.request_stop();
  EXPECT_EQ(membership.EndingWith(aborted), aborted);
}

TEST(Membership, AnOrderToStopGoesBeforeAWishToLeave) {
  std::stop_source process;
  Membership membership(process.get_token(), /*leaves=*/true);
  process.request_stop();
  v1::Command command;
  command.set_kind(v1::Command::STOP);
  membership.MakeCallbacks().on_command(command);
  EXPECT_TRUE(absl::IsCancelled(membership.WaitForGeneration(0, kLong).status()));
}

TEST(Membership, ARefusalIsAnErrorUnlessANewerProcessTookOver) {
  v1::Refused refused;
  refused.set_reason("unknown role \"x\"");
  Membership unknown{std::stop_token()};
  unknown.MakeCallbacks().on_refused(refused);
  EXPECT_TRUE(absl::IsFailedPrecondition(unknown.WaitForWelcome(kLong).status()));
  EXPECT_FALSE(unknown.refusal().ok());

  refused.set_superseded(true);
  Membership older{std::stop_token()};
  older.MakeCallbacks().on_refused(refused);
  EXPECT_TRUE(older.superseded());
  EXPECT_TRUE(older.refusal().ok());
}

TEST(Membership, AWaitHasADeadline) {
  Membership membership{std::stop_token()};
  const absl::Status status = membership.WaitForWelcome(std::chrono::milliseconds(1)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

}  // namespace
}  // namespace hetero::process
