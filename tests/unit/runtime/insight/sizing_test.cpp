// Ten simulated minutes of a job whose CPU workers are scaled by Sizing.
#include "runtime/insight/sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hetero::insight {
namespace {

using std::chrono::seconds;

constexpr int kSeconds = 600;
constexpr double kRate = 100;  // of an average worker

struct World {
  int32_t needed = 10;  // average workers that cover the demand
  int32_t begin = 2;
  int32_t max = 400;
  bool unlike = true;  // from half to twice the average rate
  bool churn = true;   // workers die, and come back
  double noise = 0.1;  // of each measurement
  unsigned seed = 1;
};

struct Worker {
  double rate = 0;
  int away_until = 0;
  int dies_at = 0;
};

struct Outcome {
  std::vector<int32_t> targets;  // each second from the first signal on
  double supply = 0;             // of the last target's workers, when all of them are there
  double largest = 0;            // worker of these
  double demand = 0;
};

class Simulation {
 public:
  explicit Simulation(const World& world) : world_(world), random_(world.seed) {}

  Outcome Run() {
    Outcome outcome{.demand = world_.needed * kRate};
    int32_t replicas = world_.begin;
    for (int second = 0; second < kSeconds; ++second) {
      Resize(replicas, second);
      const auto targets =
          sizing_.Step(Look(second, outcome.demand), base::Instant(seconds(1000 + second)));
      if (targets.empty()) continue;
      replicas = targets[0].replicas;
      outcome.targets.push_back(replicas);
    }
    Resize(replicas, kSeconds);
    for (int32_t i = 0; i < replicas; ++i) {
      outcome.supply += workers_[static_cast<size_t>(i)].rate;
      outcome.largest = std::max(outcome.largest, workers_[static_cast<size_t>(i)].rate);
    }
    return outcome;
  }

 private:
  double Noisy(double value) {
    return value * std::max(0.1, 1 + world_.noise * std::normal_distribution<>()(random_));
  }
  int Between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  void Resize(int32_t replicas, int second) {
    while (static_cast<int32_t>(workers_.size()) < replicas) {
      const double power = std::uniform_real_distribution(-1.0, 1.0)(random_);
      // The mean of 2^x over [-1, 1] is 1.08.
      const double rate = world_.unlike ? kRate * std::exp2(power) / 1.08 : kRate;
      const int start = second == 0 ? 0 : Between(5, 30);
      workers_.push_back({rate, second + start, second + Between(60, 900)});
    }
    workers_.resize(static_cast<size_t>(replicas));
  }

  SizingInput Look(int second, double demand) {
    SizingRole role{
        .name = "cpu", .replicas = world_.begin, .min_replicas = 1, .max_replicas = world_.max};
    double supply = 0;
    for (Worker& worker : workers_) {
      if (world_.churn && second == worker.dies_at) {
        worker.away_until = second + Between(2, 20);
        worker.dies_at = second + Between(60, 900);
      }
      const bool there = second >= worker.away_until;
      role.rates.push_back(there ? std::optional(Noisy(worker.rate)) : std::nullopt);
      if (there) supply += worker.rate;
    }
    return {.demand = Noisy(demand),
            .data_wait_percent = std::max(0.0, 100 * (1 - supply / demand)),
            .roles = {std::move(role)}};
  }

  World world_;
  std::mt19937 random_;
  std::vector<Worker> workers_;
  Sizing sizing_;
};

int Reversals(const std::vector<int32_t>& targets) {
  int reversals = 0;
  int last = 0;
  for (size_t i = 1; i < targets.size(); ++i) {
    const int change = targets[i] - targets[i - 1];
    if (change == 0) continue;
    if (last != 0 && (change > 0) != (last > 0)) ++reversals;
    last = change;
  }
  return reversals;
}

void ExpectSettles(const World& world) {
  SCOPED_TRACE(::testing::Message() << "needed " << world.needed << ", begin " << world.begin
                                    << ", seed " << world.seed);
  const Outcome outcome = Simulation(world).Run();
  ASSERT_FALSE(outcome.targets.empty());
  // The first signal is the jump; after it steps of one.
  for (size_t i = 1; i < outcome.targets.size(); ++i) {
    ASSERT_LE(std::abs(outcome.targets[i] - outcome.targets[i - 1]), 1) << "second " << i;
  }
  EXPECT_LE(Reversals(outcome.targets), 1);
  EXPECT_GE(outcome.supply, 0.95 * outcome.demand);
  EXPECT_LE(outcome.supply, 1.25 * outcome.demand + outcome.largest);
}

TEST(SizingTest, OneJumpThenSingleStepsAndNoSwinging) {
  for (const int32_t needed : {1, 2, 3, 5, 10, 30, 100, 200}) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      ExpectSettles({.needed = needed, .begin = std::max(1, needed / 4), .seed = seed});
    }
  }
}

TEST(SizingTest, ComesDownFromTooMany) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ExpectSettles({.needed = 5, .begin = 30, .seed = seed});
    ExpectSettles({.needed = 50, .begin = 100, .seed = seed});
  }
}

TEST(SizingTest, WithoutNoiseTheJumpIsTheAnswer) {
  for (int32_t needed = 1; needed <= 200; ++needed) {
    const Outcome outcome =
        Simulation({.needed = needed, .begin = 1, .unlike = false, .churn = false, .noise = 0})
            .Run();
    // One where it is the whole demand exactly: nobody waits.
    const auto want = needed == 1 ? 1 : static_cast<int32_t>(std::ceil(needed * 1.05 - 1e-9));
    EXPECT_EQ(outcome.targets.front(), want) << needed;
    EXPECT_EQ(outcome.targets.back(), want) << needed;
  }
}

SizingInput Input(double demand, double wait, std::vector<SizingRole> roles) {
  return {.demand = demand, .data_wait_percent = wait, .roles = std::move(roles)};
}

std::vector<SizingTarget> After(Sizing& sizing, const SizingInput& input, int second) {
  return sizing.Step(input, base::Instant(seconds(second)));
}

TEST(SizingTest, NothingIsSaidBeforeSomethingWasMeasured) {
  Sizing sizing;
  const SizingRole unknown{.name = "cpu", .max_replicas = 8, .rates = {std::nullopt}};
  EXPECT_THAT(After(sizing, Input(100, 90, {unknown}), 1), ::testing::IsEmpty());
  EXPECT_THAT(After(sizing, Input(100, 90, {unknown}), 60), ::testing::IsEmpty());
}

TEST(SizingTest, StaysBetweenItsBoundsAndSaysWhy) {
  Sizing sizing;
  const SizingRole role{.name = "cpu", .min_replicas = 1, .max_replicas = 3, .rates = {50}};
  After(sizing, Input(1000, 90, {role}), 1);
  const std::vector<SizingTarget> targets = After(sizing, Input(1000, 90, {role}), 20);
  ASSERT_THAT(targets, ::testing::SizeIs(1));
  EXPECT_EQ(targets[0].replicas, 3);
  EXPECT_EQ(targets[0].reason,
            "the trainers can take 1,000 samples/s, one replica makes 50.0; maxReplicas (3) is too "
            "low");
}

TEST(SizingTest, WhatDoesMoreForItsPriceGrowsFirst) {
  Sizing sizing;
  const SizingRole dear{
      .name = "fast", .max_replicas = 10, .price_per_hour = 1, .rates = {std::optional(100.0)}};
  const SizingRole cheap{
      .name = "spot", .max_replicas = 4, .price_per_hour = 0.1, .rates = {std::optional(50.0)}};
  After(sizing, Input(400, 60, {dear, cheap}), 1);
  const std::vector<SizingTarget> targets = After(sizing, Input(400, 60, {dear, cheap}), 20);
  ASSERT_THAT(targets, ::testing::SizeIs(2));
  EXPECT_EQ(targets[1].replicas, 4);  // 200 samples/s
  EXPECT_EQ(targets[0].replicas, 3);  // 220 are left, with the reserve
}

TEST(SizingTest, TrainersThatDoNotWaitNeedNoMore) {
  Sizing sizing;
  const SizingRole role{.name = "cpu", .max_replicas = 10, .rates = {50}};
  After(sizing, Input(1000, 1, {role}), 1);
  EXPECT_EQ(After(sizing, Input(1000, 1, {role}), 20)[0].replicas, 1);
}

}  // namespace
}  // namespace hetero::insight
