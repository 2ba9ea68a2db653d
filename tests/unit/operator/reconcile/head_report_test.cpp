#include "operator/reconcile/head_report.h"

#include <gtest/gtest.h>

#include <limits>

namespace hetero::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = plan::HeadReport::State;

const base::Instant kNow{seconds(100)};
const base::WallTime kWallNow{std::chrono::milliseconds(1'000'500)};

v1::JobStatus Running(int64_t step = 0) {
  v1::JobStatus status;
  status.set_state(v1::JobStatus::RUNNING);
  status.set_generation(2);
  v1::RoleStatus* role = status.add_roles();
  role->set_name("gpu");
  role->set_desired(2);
  role->set_registered(2);
  for (int i = 0; i < 2; ++i) {
    v1::MemberStatus* member = status.add_members();
    member->set_role("gpu");
    member->set_index(i);
    member->set_connected(true);
    member->set_incarnation(100 + i);
  }
  status.mutable_progress()->set_step(step);
  status.mutable_progress()->set_total_steps(10);
  return status;
}

// Of a job with these roles.
HeadReportBuilder Builder(const std::string& job, int32_t attempt) {
  HeadReportBuilder builder(job, attempt);
  builder.KnowReplicas({{"head", 1}, {"gpu", 2}, {"my-gpu", 1}, {"cpu", 4}});
  return builder;
}

// A stream carries each history once, so what it does not repeat still holds.
TEST(HeadReportTest, KeepsTheHistoryUntilAnotherIsTold) {
  HeadReportBuilder builder("vit", 1);
  v1::JobStatus status = Running(4);
  status.set_history("Zmlyc3Q=");
  builder.Heard(status, kNow, kWallNow);
  builder.Heard(Running(5), kNow, kWallNow);
  EXPECT_EQ(builder.report().history, "Zmlyc3Q=");
  status.set_history(std::string(8193, 'A'));  // no status could hold it
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().history, "Zmlyc3Q=");
  status.set_history(std::string(8192, 'A'));
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().history, std::string(8192, 'A'));
}

TEST(HeadReportTest, CarriesWhatTheHeadSays) {
  HeadReportBuilder builder = Builder("vit", 3);
  EXPECT_EQ(builder.report().state, State::kUnknown);
  v1::JobStatus status = Running(4);
  status.set_eta_seconds(12.4);
  status.mutable_progress()->set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(builder.Heard(status, kNow, kWallNow));
  const plan::HeadReport& report = builder.report();
  EXPECT_EQ(report.state, State::kRunning);
  EXPECT_TRUE(report.connected);
  EXPECT_EQ(report.attempt, 3);
  EXPECT_EQ(report.generation, 2);
  EXPECT_EQ(report.roles.at("gpu").registered, 2);
  EXPECT_EQ(report.last_step_time, kWallNow);
  ASSERT_TRUE(report.progress.has_value());
  EXPECT_EQ(report.progress->step, 4);
  EXPECT_EQ(report.progress->eta_seconds, 12);
  EXPECT_EQ(report.progress->loss, 0);
  EXPECT_EQ(report.verdict, std::nullopt);
  builder.Disconnected();
  EXPECT_FALSE(builder.report().connected);
  EXPECT_EQ(builder.report().state, State::kRunning);
}

TEST(HeadReportTest, RemembersTheNewestHead) {
  HeadReportBuilder builder = Builder("vit", 1);
  for (const int64_t incarnation : {700, 900, 0, 800}) {
    v1::JobStatus status = Running();
    status.set_head_incarnation(incarnation);
    builder.Heard(status, kNow, kWallNow);
  }
  EXPECT_EQ(builder.report().head_incarnation, 900);
}

TEST(HeadReportTest, FiguresHaveTheDigitsThatPeopleRead) {
  HeadReportBuilder builder = Builder("blur", 1);
  v1::JobStatus status = Running(3);
  status.mutable_progress()->set_samples_per_second(5498.68680189963);
  status.mutable_progress()->set_data_wait_percent(3.14159);
  status.mutable_progress()->set_loss(0.023856217773864045);
  builder.Heard(status, kNow, kWallNow);
  const api::JobProgress& progress = *builder.report().progress;
  EXPECT_EQ(progress.samples_per_second, 5498.7);
  EXPECT_EQ(progress.data_wait_percent, 3.1);
  EXPECT_EQ(progress.loss, 0.023856);
}

TEST(HeadReportTest, TimesMoveOnlyWithTheStep) {
  HeadReportBuilder builder = Builder("vit", 1);
  builder.Heard(Running(4), kNow, kWallNow);
  EXPECT_FALSE(builder.Heard(Running(4), kNow, kWallNow + seconds(9)));
  EXPECT_EQ(builder.report().last_step_time, kWallNow);
  EXPECT_EQ(builder.report().last_heard, kWallNow + seconds(9));
  EXPECT_EQ(builder.report().progress->last_update_time, base::WallTime(seconds(1000)));
  EXPECT_FALSE(builder.Heard(Running(5), kNow, kWallNow + seconds(10)));
  EXPECT_EQ(builder.report().last_step_time, kWallNow + seconds(10));
  EXPECT_EQ(builder.report().progress->last_update_time, base::WallTime(seconds(1010)));
}

TEST(HeadReportTest, SilenceEndsWithAnyWordAndBeginsAnewWithEachHead) {
  HeadReportBuilder builder("vit", 1);
  builder.Follow(kWallNow);
  EXPECT_EQ(builder.report().silent_since, kWallNow);
  builder.Heard(Running(4), kNow, kWallNow + seconds(1));
  EXPECT_EQ(builder.report().silent_since, kWallNow + seconds(1));
  builder.HeardUnchanged(kWallNow + seconds(2));
  EXPECT_EQ(builder.report().silent_since, kWallNow + seconds(2));
  EXPECT_EQ(builder.report().progress->step, 4);
  builder.Disconnected();
  EXPECT_EQ(builder.report().silent_since, kWallNow + seconds(2));
  builder.Follow(kWallNow + seconds(9));
  EXPECT_EQ(builder.report().silent_since, kWallNow + seconds(9));
  EXPECT_EQ(builder.report().last_heard, kWallNow + seconds(2));
}

TEST(HeadReportTest, AProcessThatTheHeadGaveUpForAWhileIsLost) {
  HeadReportBuilder builder = Builder("vit", 1);
  builder.Heard(Running(4), kNow, kWallNow);
  v1::JobStatus status = Running(4);
  status.mutable_members(1)->set_connected(false);
  status.mutable_members(1)->set_lost(true);
  EXPECT_FALSE(builder.Heard(status, kNow, kWallNow));
  EXPECT_FALSE(builder.report().members.at("gpu-1").lost);
  EXPECT_EQ(builder.UntilLost(kNow + seconds(1)), base::Duration(seconds(2)));
  EXPECT_FALSE(builder.UpdateLost(kNow + milliseconds(2999)));
  EXPECT_TRUE(builder.UpdateLost(kNow + seconds(3)));
  EXPECT_TRUE(builder.report().members.at("gpu-1").lost);
  EXPECT_EQ(builder.report().members.at("gpu-1").incarnation, 101);
  EXPECT_EQ(builder.UntilLost(kNow + seconds(3)), std::nullopt);
  EXPECT_FALSE(builder.Heard(status, kNow + seconds(4), kWallNow)) << "no news";
  EXPECT_TRUE(builder.report().members.at("gpu-1").lost);
  builder.Heard(Running(4), kNow + seconds(5), kWallNow);
  EXPECT_FALSE(builder.report().members.at("gpu-1").lost) << "it is back";
}

TEST(HeadReportTest, EveryProcessHasAPatienceOfItsOwn) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(4);
  status.mutable_members(1)->set_lost(true);
  builder.Heard(status, kNow, kWallNow);
  EXPECT_TRUE(builder.UpdateLost(kNow + seconds(3)));
  status.mutable_members(1)->set_incarnation(202);
  builder.Heard(status, kNow + seconds(4), kWallNow);
  EXPECT_FALSE(builder.report().members.at("gpu-1").lost);
  EXPECT_EQ(builder.UntilLost(kNow + seconds(4)), base::Duration(seconds(3)));
}

TEST(HeadReportTest, AReplicaIsThereWhenAllItsRanksAre) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(4);
  *status.add_members() = status.members(0);
  status.mutable_members(2)->set_local_rank(1);
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().members.size(), 2u);
  EXPECT_TRUE(builder.report().members.at("gpu-0").connected);
  status.mutable_members(2)->set_connected(false);
  builder.Heard(status, kNow, kWallNow);
  EXPECT_FALSE(builder.report().members.at("gpu-0").connected);
}

TEST(HeadReportTest, SizingAndTroubleAreToldAtOnce) {
  HeadReportBuilder builder = Builder("vit", 1);
  builder.Heard(Running(4), kNow, kWallNow);
  v1::JobStatus status = Running(4);
  v1::RoleSizing* sizing = status.add_sizing();
  sizing->set_role("cpu");
  sizing->set_needed_replicas(3);
  sizing->set_reason("waits 40 %");
  EXPECT_TRUE(builder.Heard(status, kNow, kWallNow));
  EXPECT_EQ(builder.report().sizing.at("cpu").needed, 3);
  EXPECT_EQ(builder.report().sizing.at("cpu").reason, "waits 40 %");
  sizing->set_reason("waits 41 %");
  EXPECT_FALSE(builder.Heard(status, kNow, kWallNow)) << "the same number";
  status.set_checkpoint_problem("disk full");
  EXPECT_TRUE(builder.Heard(status, kNow, kWallNow));
  EXPECT_EQ(builder.report().checkpoint_problem, "disk full");
}

TEST(HeadReportTest, TheEndCarriesTheVerdict) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(10);
  status.set_state(v1::JobStatus::SUCCEEDED);
  status.set_summary("10 steps");
  status.mutable_result()->set_loss(0.5);
  status.mutable_result()->set_stream_digest("abc");
  EXPECT_TRUE(builder.Heard(status, kNow, kWallNow));
  ASSERT_TRUE(builder.report().verdict.has_value());
  EXPECT_TRUE(builder.report().verdict->succeeded);
  EXPECT_EQ(builder.report().verdict->message, "10 steps");
  EXPECT_EQ(builder.report().verdict->result.loss, 0.5);
  EXPECT_EQ(builder.report().verdict->result.accuracy, std::nullopt);
  EXPECT_EQ(builder.report().verdict->result.stream_digest, "abc");

  status.set_state(v1::JobStatus::FAILED);
  status.mutable_first_failure()->set_member("my-gpu-0.1");
  status.mutable_first_failure()->set_message("loss is NaN");
  builder.Heard(status, kNow, kWallNow);
  EXPECT_FALSE(builder.report().verdict->succeeded);
  EXPECT_EQ(builder.report().verdict->message, "loss is NaN");
  EXPECT_EQ(builder.report().verdict->failure.pod, "vit-my-gpu-0");
  EXPECT_EQ(builder.report().verdict->failure.role, "my-gpu");
}

// A head's image is the user's: each member it invents took memory in the operator.
TEST(HeadReportTest, MembersThatTheJobDoesNotHaveArePassedOver) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(4);
  const auto invent = [&](const std::string& role, int32_t index) {
    v1::MemberStatus* member = status.add_members();
    member->set_role(role);
    member->set_index(index);
    member->set_lost(true);
  };
  for (int i = 2; i < 5000; ++i) invent("gpu", i);
  invent("gpu", -1);
  invent("nobody", 0);
  status.add_roles()->set_name("nobody");
  v1::RoleSizing* sizing = status.add_sizing();
  sizing->set_role("nobody");
  sizing->set_needed_replicas(9);
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().members.size(), 2u);
  EXPECT_EQ(builder.report().roles.size(), 1u);
  EXPECT_TRUE(builder.report().sizing.empty());
  EXPECT_EQ(builder.UntilLost(kNow), std::nullopt);
  EXPECT_FALSE(builder.UpdateLost(kNow + seconds(10)));
}

// The API server refuses a status with longer ones, and would for good.
TEST(HeadReportTest, TextsAreCutToWhatAStatusHolds) {
  HeadReportBuilder builder = Builder("vit", 1);
  const std::string long_text(60'000, 'x');
  v1::JobStatus status = Running(10);
  status.set_state(v1::JobStatus::FAILED);
  status.set_checkpoint_problem(long_text);
  status.mutable_first_failure()->set_member("gpu-0");
  status.mutable_first_failure()->set_message(long_text);
  status.mutable_result()->set_stream_digest(long_text);
  status.mutable_result()->set_report_uri(long_text);
  status.mutable_roles(0)->set_registered(-3);
  builder.Heard(status, kNow, kWallNow);
  const plan::HeadReport& report = builder.report();
  EXPECT_EQ(report.checkpoint_problem.size(), 4096u);
  EXPECT_EQ(report.verdict->message.size(), 4096u);
  EXPECT_EQ(report.verdict->failure.message.size(), 4096u);
  EXPECT_EQ(report.verdict->result.stream_digest.size(), 64u);
  EXPECT_EQ(report.verdict->result.report_uri.size(), 1024u);
  EXPECT_EQ(report.roles.at("gpu").registered, 0);
}

// A script that failed and was started again is known while the job goes on, and its last words
// survive the cut.
TEST(HeadReportTest, ScriptsThatFailAreToldAtOnceWithTheEndOfWhatTheySaid) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(10);
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().script_restarts, 0);
  EXPECT_FALSE(builder.report().first_failure.has_value());

  status.set_script_restarts(1);
  status.mutable_first_failure()->set_member("gpu-0");
  status.mutable_first_failure()->set_message("exit code 1\n" + std::string(9'000, 'x') +
                                              "\nValueError: no");
  EXPECT_TRUE(builder.Heard(status, kNow, kWallNow));
  EXPECT_EQ(builder.report().script_restarts, 1);
  ASSERT_TRUE(builder.report().first_failure.has_value());
  EXPECT_EQ(builder.report().first_failure->pod, "vit-gpu-0");
  const std::string& message = builder.report().first_failure->message;
  EXPECT_LE(message.size(), 4096u);
  EXPECT_TRUE(message.starts_with("exit code 1\n")) << message;
  EXPECT_TRUE(message.ends_with("\nValueError: no")) << message;
  EXPECT_FALSE(builder.report().verdict.has_value());
  EXPECT_FALSE(builder.Heard(status, kNow, kWallNow)) << "nothing new";
}

TEST(HeadReportTest, AFailureOfNobodyNamesNoPod) {
  HeadReportBuilder builder = Builder("vit", 1);
  v1::JobStatus status = Running(10);
  status.set_state(v1::JobStatus::FAILED);
  status.mutable_first_failure()->set_member(std::string(300, 'a') + "-0");
  status.mutable_first_failure()->set_message("no");
  builder.Heard(status, kNow, kWallNow);
  EXPECT_EQ(builder.report().verdict->failure.pod, "");
  EXPECT_EQ(builder.report().verdict->failure.role, "");
  EXPECT_EQ(builder.report().verdict->message, "no");
}

}  // namespace
}  // namespace hetero::reconcile
