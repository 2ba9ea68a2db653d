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
  EXPECT_EQ(membership.WaitForGeneration(kLong)->number(), 1);
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
  EXPECT_TRUE(absl::IsCancelled(membership.WaitForGeneration(kLong).status()));
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
