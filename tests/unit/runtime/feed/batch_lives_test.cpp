#include "runtime/feed/batch_lives.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "base/fake_clock.h"
#include "base/mutex.h"
#include "feed_fixture.h"
#include "runtime/feed/read_time.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_intake.h"

namespace hetero::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

base::Instant AtMs(int ms) { return base::Instant(std::chrono::hours(1) + milliseconds(ms)); }

Ticket TrainingTicket(int64_t step, int64_t id = 0) { return {.id = id, .step = step}; }

Batch MadeIn(const Ticket& ticket, double queued, double work, double read = 0) {
  Batch batch;
  batch.ticket = ticket;
  batch.queued_seconds = queued;
  batch.work_seconds = work;
  batch.read_seconds = read;
  return batch;
}

double SumOf(const BatchTimes& times) {
  return base::ToSeconds(times.queued + times.work + times.transfer);
}

TEST(BatchLivesTest, TheFirstAndThenOneOfAHundredByTheStep) {
  int sampled = 0;
  for (int64_t step = 0; step < 1000; ++step) {
    sampled += BatchLives::IsSampled(TrainingTicket(step, step % 7)) ? 1 : 0;
  }
  EXPECT_EQ(sampled, 10 + 9);
  EXPECT_TRUE(BatchLives::IsSampled(TrainingTicket(0)));
  EXPECT_TRUE(BatchLives::IsSampled(TrainingTicket(700)));
  EXPECT_FALSE(BatchLives::IsSampled(TrainingTicket(701)));
  EXPECT_FALSE(BatchLives::IsSampled({.split = job::Split::kValidation, .step = 0}));
}

TEST(BatchLivesTest, SpansFollowOneAnother) {
  BatchLives lives;
  const Ticket ticket = TrainingTicket(5, 3);
  lives.OnAsked(1, ticket, AtMs(0), base::WallTime(std::chrono::seconds(7)));
  Batch batch = MadeIn(ticket, 0.010, 0.050, 0.020);
  lives.OnArrived(1, AtMs(100), &batch);
  ASSERT_TRUE(batch.times.has_value());
  EXPECT_EQ(batch.times->asked, base::WallTime(std::chrono::seconds(7)));
  EXPECT_EQ(batch.times->queued, milliseconds(10));
  EXPECT_EQ(batch.times->work, milliseconds(50));
  EXPECT_EQ(batch.times->read, milliseconds(20));
  EXPECT_EQ(batch.times->transfer, milliseconds(40));
  EXPECT_EQ(batch.times->received, AtMs(100));
}

// Another producer has it too; whoever delivers was asked at a time of its own.
TEST(BatchLivesTest, WhoDeliversHasALifeOfItsOwn) {
  BatchLives lives;
  const Ticket ticket = TrainingTicket(5, 3);
  lives.OnAsked(1, ticket, AtMs(0), {});
  lives.OnAsked(2, ticket, AtMs(80), {});
  Batch batch = MadeIn(ticket, 0, 0.015);
  lives.OnArrived(2, AtMs(100), &batch);
  EXPECT_DOUBLE_EQ(SumOf(*batch.times), 0.020);
  lives.Forget(3);
  Batch late = MadeIn(ticket, 0, 0.015);
  lives.OnArrived(1, AtMs(120), &late);
  EXPECT_FALSE(late.times.has_value());
}

// Workers have clocks of their own, and may tell anything.
TEST(BatchLivesTest, NoSpanIsNegativeOrLongerThanAll) {
  for (const double told : {-1.0, 0.0, 0.05, 1e300, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    for (const double other : {-5.0, 0.02, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
      BatchLives lives;
      const Ticket ticket = TrainingTicket(0);
      lives.OnAsked(1, ticket, AtMs(0), {});
      Batch batch = MadeIn(ticket, told, other, told);
      lives.OnArrived(1, AtMs(100), &batch);
      const BatchTimes& times = *batch.times;
      for (const base::Duration span : {times.queued, times.work, times.transfer, times.read}) {
        EXPECT_GE(span, base::Duration::zero());
      }
      EXPECT_LE(times.read, times.work);
      EXPECT_DOUBLE_EQ(SumOf(times), 0.1);
    }
  }
}

TEST(BatchLivesTest, OfOtherTicketsNothingIsKept) {
  BatchLives lives;
  Batch batch = MadeIn(TrainingTicket(11, 11), 0, 0.01);
  lives.OnAsked(1, batch.ticket, AtMs(0), {});
  lives.OnArrived(1, AtMs(100), &batch);
  EXPECT_FALSE(batch.times.has_value());
}

// Real streams: who has a life, whose it is, and that it fits into the time that passed.
class StreamOfLives : public FeedFixture {
 protected:
  void ExpectLives(TicketClient& client, const std::string& producer) {
    const base::WallTime begin = base::Clock::Real().WallNow();
    int64_t sampled = 0;
    while (true) {
      const auto batch = client.Next(stop_.get_token());
      if (absl::IsOutOfRange(batch.status())) break;
      ASSERT_TRUE(batch.ok()) << batch.status();
      const base::Duration passed = base::Clock::Real().WallNow() - begin;
      const auto& times = (*batch)->times;
      EXPECT_EQ(times.has_value(), BatchLives::IsSampled((*batch)->ticket));
      if (!times) continue;
      ++sampled;
      EXPECT_EQ((*batch)->producer, producer);
      EXPECT_GT(times->work, base::Duration::zero());
      EXPECT_GE(times->window, base::Duration::zero());
      // The first were asked for before this began to look.
      EXPECT_LE(times->queued + times->work + times->transfer + times->window,
                passed + (begin - std::min(begin, times->asked)) + std::chrono::milliseconds(50));
    }
    EXPECT_EQ(sampled, 11) << "of 126 steps";
  }
};

TEST_F(StreamOfLives, OfWorkersBatches) {
  std::vector<std::unique_ptr<WorkerServer>> servers;
  servers.push_back(StartWorker("127.0.0.1:0"));
  ASSERT_NE(servers[0], nullptr);
  const auto client = StartClient(0);
  client->SetRoster(Roster(servers));
  ExpectLives(*client, "cpu-0");
  const WorkerCounters counters = servers[0]->counters();
  EXPECT_GT(counters.produce_seconds, 0);
  EXPECT_EQ(counters.read_seconds, 0) << "this producer reads nothing";
}

// 10 ms of reading and 30 ms of work for each sample, on one thread and a clock of its own.
class ReadingProducer : public CountingProducer {
 public:
  explicit ReadingProducer(base::FakeClock& clock) : clock_(clock) {}
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const override {
    {
      const ReadTimer timer(clock_);
      clock_.Advance(milliseconds(10));
    }
    clock_.Advance(milliseconds(30));
    return CountingProducer::Produce(batch, index, bad);
  }

 private:
  base::FakeClock& clock_;
};

TEST(ReadTimeTest, IsTheShareOfTheWorkInWhichThreadsRead) {
  base::FakeClock clock;
  const ReadingProducer producer(clock);
  std::vector<std::unique_ptr<Batch>> batches;
  base::Mutex mutex;
  base::CondVar done;
  TicketExecutor executor({.name = "test", .threads = 1}, clock);
  TicketExecutor::Callbacks callbacks{
      .on_started = [](const Ticket&) {},
      .on_done =
          [&](const Ticket&, absl::StatusOr<std::unique_ptr<Batch>> batch) {
            const base::MutexLock lock(mutex);
            batches.push_back(*std::move(batch));
            done.NotifyAll();
          }};
  executor.Submit({.id = 0, .slots = {0, 4}}, callbacks);
  executor.Submit({.id = 1, .slots = {4, 4}}, callbacks);
  executor.SetProducer(&producer);
  const base::MutexLock lock(mutex);
  while (batches.size() < 2) done.Wait(mutex);
  EXPECT_DOUBLE_EQ(batches[0]->work_seconds, 0.16);
  EXPECT_DOUBLE_EQ(batches[0]->read_seconds, 0.04);
  EXPECT_DOUBLE_EQ(batches[0]->queued_seconds, 0);
  EXPECT_DOUBLE_EQ(batches[1]->read_seconds, 0.04);
  EXPECT_DOUBLE_EQ(batches[1]->queued_seconds, 0.16);
}

TEST(QueuedTimeTest, HasTheWaitForTheWorkersMemory) {
  base::FakeClock clock;
  const CountingProducer producer(8);
  std::vector<std::unique_ptr<Batch>> batches;
  base::Mutex mutex;
  base::CondVar done;
  TicketExecutor executor({.name = "test", .threads = 1}, clock);
  TicketIntake intake(&executor, /*most_bytes=*/1);  // one is taken up always
  const TicketExecutor::Callbacks callbacks{
      .on_started = [](const Ticket&) {},
      .on_done =
          [&](const Ticket&, absl::StatusOr<std::unique_ptr<Batch>> batch) {
            const base::MutexLock lock(mutex);
            batches.push_back(*std::move(batch));
            done.NotifyAll();
          }};
  intake.SetProducer(&producer);
  const TicketGate::Owner owner = intake.Join();
  intake.Submit(owner, {.id = 0, .slots = {0, 4}}, callbacks);
  intake.Submit(owner, {.id = 1, .slots = {4, 4}}, callbacks);
  const base::MutexLock lock(mutex);
  while (batches.empty()) done.Wait(mutex);
  clock.Advance(seconds(5));
  std::exchange(batches, {}).clear();
  while (batches.empty()) done.Wait(mutex);
  EXPECT_EQ(batches[0]->ticket.id, 1);
  EXPECT_DOUBLE_EQ(batches[0]->queued_seconds, 5);
}

TEST_F(StreamOfLives, OfWhatOwnCoresMake) {
  const auto client = StartClient(1);
  ExpectLives(*client, "local");
}

}  // namespace
}  // namespace hetero::feed
