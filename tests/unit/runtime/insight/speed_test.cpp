#include "runtime/insight/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::insight {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// 1,000 samples in ten seconds, of which rank 0 waited six: 250 samples/s without input.
SpeedEvidence Waiting() {
  return {.ranks = {{.data_wait_percent = 60,
                     .phases = {.wait = 6, .forward = 1, .backward = 2, .optimizer = 1},
                     .waits = {.workers = 6}}},
          .steps = 100,
          .samples = 1000,
          .supplies = {{.role = "cpu", .replicas = 2, .samples_per_second = 50}}};
}

TEST(SpeedTest, NothingIsSaidBeforeTheFirstStep) {
  const SpeedVerdict verdict = JudgeSpeed({});
  EXPECT_EQ(verdict.sentence, "");
  EXPECT_FALSE(verdict.ceiling);
  EXPECT_THAT(verdict.predictions, IsEmpty());
}

TEST(SpeedTest, MoreWorkersHelpUpToTheCeiling) {
  const SpeedVerdict verdict = JudgeSpeed(Waiting());
  EXPECT_THAT(verdict.samples_per_second, DoubleNear(100, 1e-9));
  EXPECT_THAT(*verdict.ceiling, DoubleNear(250, 1e-9));
  ASSERT_THAT(verdict.predictions, SizeIs(3));
  EXPECT_EQ(verdict.predictions[0].replicas, 3);
  EXPECT_THAT(verdict.predictions[0].samples_per_second, DoubleNear(150, 1e-9));
  EXPECT_THAT(verdict.predictions[1].samples_per_second, DoubleNear(200, 1e-9));
  EXPECT_THAT(verdict.predictions[2].samples_per_second, DoubleNear(250, 1e-9));
  EXPECT_EQ(verdict.sentence,
            "input-bound: 60 % of each step waits for data; 2 more cpu replicas: 2.0 times the "
            "rate");
}

TEST(SpeedTest, AProbedCeilingComesBeforeAnEstimatedOne) {
  SpeedEvidence evidence = Waiting();
  evidence.probed_ceiling = 120;
  const SpeedVerdict verdict = JudgeSpeed(evidence);
  EXPECT_EQ(verdict.ceiling, 120);
  EXPECT_EQ(
      verdict.sentence,
      "input-bound: 60 % of each step waits for data; 1 more cpu replica: 1.2 times the rate");
}

TEST(SpeedTest, ASlowNetworkIsNotCuredByWorkers) {
  SpeedEvidence evidence = Waiting();
  evidence.ranks[0].waits = {.workers = 1, .transfer = 5};
  const SpeedVerdict verdict = JudgeSpeed(evidence);
  EXPECT_EQ(verdict.sentence,
            "input-bound: 60 % of each step waits for data, mostly for its transfer");
  EXPECT_THAT(verdict.predictions, IsEmpty());
}

TEST(SpeedTest, TheWorstRankCountsAndWaitingForItIsNotCompute) {
  SpeedEvidence evidence = Waiting();
  // The other rank had its data and waited in the reduction instead.
  evidence.ranks.push_back(
      {.data_wait_percent = 1,
       .phases = {.wait = 0.1, .forward = 1, .backward = 2, .all_reduce = 5.9, .optimizer = 1},
       .waits = {.workers = 0.1}});
  const SpeedVerdict verdict = JudgeSpeed(evidence);
  EXPECT_THAT(verdict.sentence, HasSubstr("input-bound: 60 %"));
  EXPECT_THAT(*verdict.ceiling, DoubleNear(250, 1e-9));
}

TEST(SpeedTest, EvaluationsAreNotPartOfTheRate) {
  SpeedEvidence evidence = Waiting();
  evidence.ranks[0].phases.evaluation = 30;
  evidence.ranks[0].phases.checkpoint = 5;
  EXPECT_THAT(JudgeSpeed(evidence).samples_per_second, DoubleNear(100, 1e-9));
}

TEST(SpeedTest, SpareWorkersAreNamedWithWhatTheyCost) {
  SpeedEvidence evidence = Waiting();
  evidence.ranks[0] = {.data_wait_percent = 2,
                       .phases = {.wait = 0.2, .forward = 3.8, .backward = 6},
                       .waits = {.workers = 0.2}};
  evidence.supplies[0] = {
      .role = "cpu", .replicas = 4, .samples_per_second = 60, .price_per_hour = 0.9};
  evidence.price_per_hour = 7.2;
  // Two of the four make 120 samples/s where 100 are taken. 1,000 steps take 100 s.
  EXPECT_EQ(JudgeSpeed(evidence).sentence,
            "compute-bound: 2 % of each step waits for data; 2 fewer cpu replicas would keep up "
            "too, $0.0500 less per 1,000 steps");
  evidence.supplies[0].samples_per_second = 36;
  EXPECT_EQ(JudgeSpeed(evidence).sentence, "compute-bound: 2 % of each step waits for data");
}

TEST(SpeedTest, UnmeasuredWorkersPredictNothing) {
  SpeedEvidence evidence = Waiting();
  evidence.supplies[0].samples_per_second = 0;
  EXPECT_EQ(JudgeSpeed(evidence).sentence, "input-bound: 60 % of each step waits for data");
}

}  // namespace
}  // namespace hetero::insight
