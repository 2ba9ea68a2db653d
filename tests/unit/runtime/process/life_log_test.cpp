#include "runtime/process/life_log.h"

#include <gtest/gtest.h>

namespace hetero::process {
namespace {

using std::chrono::milliseconds;

base::Instant At(int ms) { return base::Instant(std::chrono::hours(1) + milliseconds(ms)); }

feed::Batch Sampled(int64_t step, int taken_ms) {
  feed::Batch batch;
  batch.ticket.id = step + 100;
  batch.ticket.step = step;
  batch.producer = "cpu-1";
  batch.labels.assign(4, 0);
  batch.cpu_seconds = 0.03;
  batch.times = feed::BatchTimes{.asked = base::WallTime(std::chrono::seconds(1'700'000'000)),
                                 .queued = milliseconds(1),
                                 .work = milliseconds(2),
                                 .transfer = milliseconds(4),
                                 .window = milliseconds(8),
                                 .read = milliseconds(1),
                                 .taken = At(taken_ms)};
  return batch;
}

TEST(LifeLogTest, ALifeEndsWithItsStep) {
  LifeLog log;
  const feed::Batch batch = Sampled(3, 0);
  log.OnBegins(batch, At(16));
  log.OnUsed(batch, At(48));
  v1::Heartbeat early;
  log.Take(early);
  EXPECT_EQ(early.lives_size(), 0);
  log.OnStep(4, 0.5, At(200));  // told when the next batch is there
  v1::Heartbeat heartbeat, again;
  log.Take(heartbeat);
  ASSERT_EQ(heartbeat.lives_size(), 1);
  const v1::BatchLife& life = heartbeat.lives(0);
  EXPECT_EQ(life.ticket(), 103);
  EXPECT_EQ(life.step(), 4);
  EXPECT_EQ(life.worker(), "cpu-1");
  EXPECT_EQ(life.samples(), 4);
  EXPECT_EQ(life.asked_unix_ns(), 1'700'000'000'000'000'000);
  EXPECT_DOUBLE_EQ(life.window_seconds(), 0.008);
  EXPECT_DOUBLE_EQ(life.handover_seconds(), 0.016);
  EXPECT_DOUBLE_EQ(life.step_seconds(), 0.032);
  EXPECT_DOUBLE_EQ(life.read_seconds(), 0.001);
  log.Take(again);
  EXPECT_EQ(again.lives_size(), 0);
  EXPECT_EQ(again.life_histograms().work().count(0), 1) << "totals are told again";
}

// As a script's batches are: it says no more than that it wants the next one.
TEST(LifeLogTest, WithoutAWordOfTheBeginningTheStepBeginsWithTheBatch) {
  LifeLog log;
  log.OnUsed(Sampled(0, 0), At(4));
  log.OnStep(1, 0.1, At(20));
  v1::Heartbeat heartbeat;
  log.Take(heartbeat);
  ASSERT_EQ(heartbeat.lives_size(), 1);
  EXPECT_DOUBLE_EQ(heartbeat.lives(0).handover_seconds(), 0.004);
  EXPECT_DOUBLE_EQ(heartbeat.lives(0).step_seconds(), 0.016);
}

TEST(LifeLogTest, EveryStepCountsAndOnlySampledBatchesHaveALife) {
  LifeLog log;
  feed::Batch plain = Sampled(1, 0);
  plain.times.reset();
  for (int step = 1; step <= 50; ++step) {
    plain.ticket.step = step - 1;
    log.OnBegins(plain, At(step));
    log.OnUsed(plain, At(step));
    log.OnStep(step, 0.25, At(step));
  }
  v1::Heartbeat heartbeat;
  log.Take(heartbeat);
  EXPECT_EQ(heartbeat.lives_size(), 0);
  ASSERT_EQ(heartbeat.life_histograms().whole_step().count_size(), 1);
  EXPECT_EQ(heartbeat.life_histograms().whole_step().count(0), 50);
  EXPECT_EQ(heartbeat.life_histograms().work().count_size(), 0);
}

// Steps that broke and were done again, and a head that does not answer.
TEST(LifeLogTest, IsBounded) {
  LifeLog log;
  for (int step = 0; step < 1000; ++step) log.OnBegins(Sampled(step, 0), At(1));
  log.OnStep(1000, 0.1, At(2));
  v1::Heartbeat heartbeat;
  log.Take(heartbeat);
  EXPECT_EQ(heartbeat.lives_size(), 1) << "those before it came to nothing";
  for (int step = 1; step <= 1000; ++step) {
    log.OnUsed(Sampled(step - 1, 0), At(step));
    log.OnStep(step, 0.1, At(step + 1));
  }
  v1::Heartbeat many;
  log.Take(many);
  EXPECT_EQ(many.lives_size(), static_cast<int>(LifeLog::kMostLives));
  EXPECT_EQ(many.lives(many.lives_size() - 1).step(), 1000);
}

TEST(LifeLogTest, WhatTheRankMadeItselfHasNoWorker) {
  LifeLog log;
  feed::Batch own = Sampled(0, 50);
  own.producer = "local";
  log.OnUsed(own, At(10));  // before it was taken: no span is below nothing
  log.OnStep(1, 0.1, At(5));
  v1::Heartbeat heartbeat;
  log.Take(heartbeat);
  EXPECT_EQ(heartbeat.lives(0).worker(), "");
  EXPECT_EQ(heartbeat.lives(0).handover_seconds(), 0);
  EXPECT_EQ(heartbeat.lives(0).step_seconds(), 0);
}

}  // namespace
}  // namespace hetero::process
