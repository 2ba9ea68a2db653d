// What the report of a job says whose head, whose members, or all of them were replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/head/long_job.h"

namespace hetero::head {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kCreatedNs = 1'700'000'000'000'000'000;

// What a rank of a process that began with step `first` tells after `seconds` of training.
v1::Heartbeat RankTells(int64_t first, int64_t step, double train_seconds) {
  v1::Heartbeat heartbeat;
  heartbeat.mutable_counters()->set_cpu_seconds(train_seconds);
  v1::Progress& progress = *heartbeat.mutable_progress();
  progress.set_first_step(first);
  progress.set_samples_before(10 * first);
  progress.set_step(step);
  progress.set_epoch(1);
  progress.set_total_steps(100);
  progress.set_samples_consumed(10 * step);
  progress.set_digest_covers_job(true);
  progress.set_train_seconds(train_seconds);
  progress.set_data_wait_percent(25);
  progress.mutable_phases()->set_wait(train_seconds / 4);
  progress.mutable_phases()->set_forward(3 * train_seconds / 4);
  progress.mutable_waits()->set_workers(train_seconds / 4);
  progress.set_tickets_reissued(1);
  return heartbeat;
}

void TellAll(LongJob& job, const v1::Heartbeat& heartbeat) {
  for (const StreamId stream : {20, 21, 30}) job.Tell(stream, heartbeat);
}

const insight::ReportWorker& WorkerIn(const insight::Report& report, const std::string& name) {
  for (const insight::ReportWorker& worker : report.workers) {
    if (worker.name == name) return worker;
  }
  static const insight::ReportWorker none;
  ADD_FAILURE() << "no worker " << name;
  return none;
}

// The report once said wall 5.6 s of 75, start-up -3.7 s, and no fault.
TEST(HistoryTest, AHeadThatIsReplacedTakesNothingWithIt) {
  LongJob job;
  job.JoinAll();
  job.Pass(seconds(4), {10, 20, 21, 30});
  v1::Heartbeat first = RankTells(0, 10, 2);
  first.mutable_progress()->set_first_step_unix_ns(kCreatedNs + 3'000'000'000);
  TellAll(job, first);
  job.Apply(StreamClosed{30, true});
  job.Pass(seconds(2), {10, 20, 21});
  job.Join(31, "big", 0, 2);
  job.Pass(seconds(60), {10, 20, 21, 31});
  const insight::Report before = job.Report();
  ASSERT_THAT(before.faults, SizeIs(1));

  job.ReplaceHead();
  job.elapsed += seconds(1);
  job.headless = milliseconds(1500);
  job.Join(10, "cpu", 0, 1);
  job.Join(20, "gpu", 0, 1, 2);
  job.Join(21, "gpu", 1, 1, 2);
  job.Join(30, "big", 0, 2, 2);
  TellAll(job, RankTells(0, 40, 20));
  job.Pass(seconds(9), {10, 20, 21, 30});
  const insight::Report after = job.Report();
  EXPECT_NEAR(*after.wall_seconds, 76, 0.01);
  EXPECT_DOUBLE_EQ(*after.startup_seconds, 3);
  EXPECT_EQ(after.generations, 2);
  EXPECT_EQ(WorkerIn(after, "big-0").restarts, 1);
  ASSERT_THAT(after.faults, SizeIs(2));
  EXPECT_EQ(after.faults[0].what, before.faults[0].what);
  EXPECT_EQ(after.faults[0].time, before.faults[0].time);
  EXPECT_EQ(after.faults[0].recovery_seconds, before.faults[0].recovery_seconds);
  EXPECT_THAT(after.faults[1].what, HasSubstr("the head was lost; replaced"));
  // The last one that joined had been without a head for 1.5 s, since before this one began.
  EXPECT_NEAR(*after.faults[1].recovery_seconds, 1.0, 0.51);
  EXPECT_THAT(after.attempts, SizeIs(1));
}

TEST(HistoryTest, ARunWithoutTroubleHasNoTraceOfHistory) {
  LongJob job;
  job.JoinAll();
  TellAll(job, RankTells(0, 40, 20));
  job.Pass(seconds(30), {10, 20, 21, 30});
  const insight::Report report = job.Report();
  EXPECT_THAT(report.faults, IsEmpty());
  ASSERT_THAT(report.attempts, SizeIs(1));
  EXPECT_NEAR(report.attempts[0].seconds, 30, 0.01);
  for (const insight::ReportWorker& worker : report.workers) EXPECT_EQ(worker.restarts, 0);
}

TEST(HistoryTest, TimesOfProcessesThatDiedCount) {
  LongJob job;
  job.JoinAll();
  TellAll(job, RankTells(0, 20, 10));
  job.Pass(seconds(1), {10, 20, 21, 30});
  for (const StreamId stream : {20, 21, 30}) job.Apply(StreamClosed{stream, true});
  job.JoinAll(2);
  TellAll(job, RankTells(10, 30, 10));  // from a checkpoint of step 10
  const insight::Report report = job.Report();
  EXPECT_DOUBLE_EQ(*report.train_seconds, 20);
  EXPECT_DOUBLE_EQ(report.phase_seconds->wait, 5);
  EXPECT_DOUBLE_EQ(report.wait_seconds->workers, 5);
  EXPECT_DOUBLE_EQ(*report.data_wait_percent, 25);
  EXPECT_EQ(report.tickets_reissued, 6);
  EXPECT_DOUBLE_EQ(*report.samples_per_second, 20);  // 40 steps of 10 samples in 20 s
  EXPECT_EQ(report.samples_consumed, 300);
  EXPECT_EQ(report.resumed_from_step, 10);
  EXPECT_EQ(WorkerIn(report, "gpu-0.0").restarts, 1);
  EXPECT_DOUBLE_EQ(WorkerIn(report, "gpu-0.0").cpu_seconds, 20);
}

// Who found it out may be gone with the head that heard it.
TEST(HistoryTest, ADigestThatWasInDoubtStaysSo) {
  api::HeteroTrainingJob spec = MakeJob();
  spec.spec.pipeline = {{.op = api::OperatorKind::kPython}};
  LongJob job(spec);
  job.JoinAll();
  TellAll(job, RankTells(0, 20, 10));
  const std::string before = job.HistoryText();
  v1::Heartbeat doubt;
  doubt.set_irreproducible("augment.transform made other pixels");
  job.Tell(10, doubt);
  const std::string told = job.HistoryText();
  EXPECT_NE(told, before) << "it is written at once";
  job.NextAttempt(told);
  job.JoinAll(1'000'000);
  TellAll(job, RankTells(0, 50, 25));
  const insight::Report report = job.Report();
  EXPECT_EQ(report.digest_problem, "augment.transform made other pixels");
  EXPECT_FALSE(report.stream_digest.has_value());
}

// Suspended without a checkpoint, and resumed: nobody is left who could tell of the first attempt.
TEST(HistoryTest, AnAttemptOfWhichNobodyIsLeftIsInTheReport) {
  api::HeteroTrainingJob spec = MakeJob();
  spec.spec.roles[3].price_per_hour = "3600";
  LongJob job(spec);
  job.JoinAll();
  v1::Heartbeat first = RankTells(0, 20, 10);
  first.mutable_progress()->set_first_step_unix_ns(kCreatedNs + 2'000'000'000);
  job.elapsed += seconds(3);
  TellAll(job, first);
  v1::Heartbeat lists;
  lists.add_losses()->set_step(20);
  lists.add_evaluations()->set_step(20);
  lists.add_bad_samples()->set_sample_id(7);
  job.Tell(20, lists);
  job.Pass(seconds(7), {10, 20, 21, 30});
  const std::string told = job.HistoryText();
  job.elapsed += seconds(1000);

  job.NextAttempt(told);
  ASSERT_LE(told.size(), kMaxHistoryText);
  EXPECT_EQ(job.state->record().reached_step, 2 * 20);
  job.JoinAll(1'000'000);
  TellAll(job, RankTells(0, 50, 25));
  lists.Clear();
  lists.add_losses()->set_step(1);
  lists.add_losses()->set_step(50);
  lists.add_evaluations()->set_step(50);
  job.Tell(20, lists);
  job.Pass(seconds(20), {10, 20, 21, 30});
  const insight::Report report = job.Report();
  EXPECT_NEAR(*report.wall_seconds, 1030, 0.01);
  EXPECT_DOUBLE_EQ(*report.startup_seconds, 2);
  EXPECT_EQ(report.attempt, 2);
  EXPECT_EQ(report.generations, 2);
  EXPECT_DOUBLE_EQ(*report.train_seconds, 35);
  EXPECT_THAT(report.evaluations, SizeIs(2));
  EXPECT_EQ(report.bad_samples, 1);
  ASSERT_THAT(report.attempts, SizeIs(2));
  EXPECT_EQ(report.attempts[0].attempt, 1);
  EXPECT_EQ(report.attempts[1].attempt, 2);
  EXPECT_NEAR(report.attempts[1].seconds, 20, 0.01);
  // It costs nothing while it is suspended. The first attempt ends with its head's last word.
  EXPECT_NEAR(*report.cost_dollars, report.attempts[0].seconds + report.attempts[1].seconds, 1e-6);
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(WorkerIn(report, "gpu-0.0").restarts, 0);  // it was not replaced for a fault
}

// "Exactly once": by identity and incarnation, however often and by whomever it is told.
TEST(HistoryTest, AFaultThatIsToldTwiceCountsOnce) {
  LongJob job;
  job.JoinAll();
  job.Apply(StreamClosed{30, true});
  const ProcessEnded killed{.member = "big-0", .incarnation = 1, .message = "killed by SIGKILL"};
  job.Apply(killed);
  EXPECT_THAT(job.state->record().faults, SizeIs(1));
  job.ReplaceHead();
  job.Apply(killed);
  job.Apply(killed);
  EXPECT_THAT(job.Report().faults, SizeIs(2));  // and the head's own
  job.Join(31, "big", 0, 2);
  job.Apply(killed);
  job.ReplaceHead();
  job.Join(31, "big", 0, 2);
  job.Apply(killed);
  const insight::Report report = job.Report();
  ASSERT_THAT(report.faults, SizeIs(2));
  EXPECT_THAT(report.faults[0].what, HasSubstr("big-0 was lost: its process ended; replaced"));
  EXPECT_TRUE(report.faults[0].recovery_seconds.has_value());
  EXPECT_EQ(WorkerIn(report, "big-0").restarts, 1);
}

// The fault of one that left named nobody: the next head never saw its end, and told of another.
TEST(HistoryTest, ARankThatLeftIsOneFaultForTheNextHeadToo) {
  LongJob job;
  job.JoinAll();
  v1::Finished word;
  word.set_stopped(true);
  word.set_leaving(true);
  job.Apply(FinishedReceived{30, word});
  ASSERT_THAT(job.state->record().faults, SizeIs(1));
  EXPECT_EQ(job.state->record().faults[0].member, "big-0");
  EXPECT_EQ(job.state->record().faults[0].incarnation, 1);
  job.ReplaceHead();
  job.JoinAll(2);
  const insight::Report report = job.Report();
  EXPECT_THAT(report.faults[0].what,
              HasSubstr("big-0 left, as it was asked to; replaced by a new"));
  EXPECT_TRUE(report.faults[0].recovery_seconds.has_value());
  for (size_t i = 1; i < report.faults.size(); ++i) {
    EXPECT_THAT(report.faults[i].what, Not(HasSubstr("big-0")));
  }
}

// The head that saw it was killed before it could write it down.
TEST(HistoryTest, AHeadHearsOfProcessesThatEndedBeforeIt) {
  LongJob job;
  job.JoinAll();
  job.ReplaceHead();
  job.Join(31, "big", 0, 2);
  EXPECT_THAT(job.Report().faults.back().what, HasSubstr("big-0 was replaced by a new process"));
  job.Apply(ProcessEnded{.member = "big-0", .incarnation = 1, .message = "killed by SIGKILL"});
  job.Apply(ProcessEnded{.member = "gpu-0.1", .incarnation = 1, .message = "killed by SIGKILL"});
  const insight::Report report = job.Report();
  ASSERT_THAT(report.faults, SizeIs(3));
  EXPECT_THAT(report.faults[2].what, HasSubstr("gpu-0.1 was lost: killed by SIGKILL"));
  job.Apply(ProcessEnded{.member = "cook-0", .incarnation = 1, .message = "nobody"});
  EXPECT_THAT(job.Report().faults, SizeIs(3));
}

TEST(HistoryTest, AProcessThatIsOlderThanTheHistoryIsRefused) {
  LongJob job;
  job.JoinAll(5);
  job.ReplaceHead();
  const auto refused = Only<Refuse>(job.Join(20, "gpu", 0, 4));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_TRUE(refused[0].refused.superseded());
  EXPECT_EQ(job.state->record().members.count({"gpu", 0, 0}), 0u);
}

TEST(HistoryTest, NoTimeIsNegativeWhenClocksAreSetBack) {
  LongJob job;
  job.JoinAll();
  v1::Heartbeat first = RankTells(0, 10, 2);
  first.mutable_progress()->set_first_step_unix_ns(kCreatedNs - 3'700'000'000);  // another node's
  job.Pass(seconds(5), {10, 20, 21, 30});
  TellAll(job, first);
  job.Apply(StreamClosed{30, true});
  job.clock_step = -std::chrono::hours(2);
  EXPECT_NEAR(*job.Report().wall_seconds, 5, 0.01);
  job.ReplaceHead();
  job.JoinAll(2);
  job.Pass(seconds(5), {10, 20, 21, 30});
  const insight::Report report = job.Report();
  EXPECT_NEAR(*report.wall_seconds, 10, 0.01);
  EXPECT_NEAR(*report.startup_seconds, 5, 0.01);  // when the head heard of it
  for (const insight::ReportFault& fault : report.faults) {
    EXPECT_GE(fault.recovery_seconds.value_or(0), 0) << fault.what;
  }
  for (const insight::ReportAttempt& attempt : report.attempts) EXPECT_GE(attempt.seconds, 0);
}

// A worker that left when it was not needed is in the report, whichever head writes it.
TEST(HistoryTest, WhoHasLeftIsRemembered) {
  LongJob job;
  job.JoinAll();
  v1::Heartbeat worked;
  worked.mutable_counters()->set_samples(250);
  worked.mutable_counters()->set_cpu_seconds(5);
  job.Tell(10, worked);
  job.Apply(FinishedReceived{10, [] {
                               v1::Finished word;
                               word.set_ok(true);
                               return word;
                             }()});
  job.ReplaceHead();
  const insight::ReportWorker left = WorkerIn(job.Report(), "cpu-0");
  EXPECT_EQ(left.samples, 250);
  EXPECT_DOUBLE_EQ(left.cpu_seconds, 5);
  // Wanted again, as a new process: that is no fault.
  job.Join(10, "cpu", 0, 2);
  job.Tell(10, worked);
  EXPECT_EQ(WorkerIn(job.Report(), "cpu-0").samples, 500);
  EXPECT_EQ(WorkerIn(job.Report(), "cpu-0").restarts, 0);
  EXPECT_THAT(job.Report().faults, SizeIs(1));  // the head's
}

// Its head was away when it left: whoever started the process hands its last word on.
TEST(HistoryTest, TheLastWordOfAWorkerThatLeftReachesTheNextHead) {
  LongJob job;
  job.JoinAll();
  job.ReplaceHead();
  v1::Finished word;
  word.set_ok(true);
  word.mutable_last()->mutable_counters()->set_samples(300);
  job.Apply(ProcessEnded{.member = "cpu-0", .ok = true, .incarnation = 1, .last_word = word});
  EXPECT_EQ(WorkerIn(job.Report(), "cpu-0").samples, 300);
  EXPECT_EQ(job.state->record().state, v1::JobStatus::WAITING);
}

TEST(HistoryTest, TimeLinesGoOnWithTheNextProcess) {
  LongJob job;
  job.JoinAll();
  TellAll(job, RankTells(0, 20, 10));
  job.Apply(StreamClosed{30, true});
  job.Join(31, "big", 0, 2);
  job.Tell(31, RankTells(20, 30, 4));
  std::vector<double> seconds_of_big;
  for (const insight::ReportTimeLine& line : job.Report().time_lines) {
    if (line.rank != 2) continue;
    for (const insight::TimePoint& point : line.points) seconds_of_big.push_back(point.seconds);
  }
  EXPECT_THAT(seconds_of_big, ElementsAre(10, 14));
}

TEST(HistoryTest, AnEndThatOthersDecidedIsAFailureWithItsReason) {
  LongJob job;
  job.JoinAll();
  const StopRequested end{.reason = "the job has run for 60 s", .failure = "DeadlineExceeded"};
  EXPECT_THAT(Stopped(job.Apply(end)), SizeIs(4));
  job.Pass(seconds(3), {10, 20, 21, 30});
  ASSERT_TRUE(job.state->ended());
  const insight::Report report = job.Report();
  EXPECT_EQ(report.state, "Failed");
  EXPECT_EQ(report.message, "DeadlineExceeded: the job has run for 60 s");
}

}  // namespace
}  // namespace hetero::head
