// How fast trainers react to workers that die, freeze, join or slow down, in virtual time with one
// script per rule.
#include <gtest/gtest.h>

#include "simulation/world.h"

namespace hetero::feed::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One rank that trains as fast as its input comes.
World::Options InputBound(std::vector<Worker::Options> workers) {
  World::Options options;
  options.samples = 400'000;
  options.window = 64;
  options.compute = std::chrono::microseconds(10);
  options.workers = std::move(workers);
  return options;
}

// Batches that worker `index` served from now on within `time`, per second.
double Rate(World* world, int index, base::Duration time) {
  const int64_t before = world->worker(index).served();
  world->RunFor(time);
  return static_cast<double>(world->worker(index).served() - before) / base::ToSeconds(time);
}

double Steps(World* world, base::Duration time) {
  const int64_t before = world->steps();
  world->RunFor(time);
  return static_cast<double>(world->steps() - before) / base::ToSeconds(time);
}

TEST(Reaction, JoiningWorkerHasItsShareWithinTwoSeconds) {
  for (const base::Duration service : {milliseconds(1), milliseconds(20), milliseconds(200)}) {
    SCOPED_TRACE(base::ToSeconds(service));
    World::Options options = InputBound({{.service = service}, {.service = service}});
    options.absent = {1};
    World world(options);
    world.RunFor(seconds(5));
    world.StartWorker(1);
    world.RunFor(seconds(2));
    const double full = 1 / base::ToSeconds(service);
    EXPECT_GE(Rate(&world, 1, seconds(4)), 0.9 * full);
    EXPECT_GE(Steps(&world, seconds(4)), 1.8 * full);
  }
}

TEST(Reaction, JoiningWorkerIsBusyAtOnceWithWhatAnotherHasNotBegun) {
  World::Options options =
      InputBound({{.service = milliseconds(20)}, {.service = milliseconds(20)}});
  options.absent = {1};
  options.window = 32;
  World world(options);
  world.RunFor(seconds(5));
  EXPECT_EQ(world.trainer(0).window().outstanding(1), 32);  // all there is
  world.StartWorker(1);
  EXPECT_GE(Rate(&world, 1, milliseconds(500)), 0.8 * 50);
  EXPECT_GT(world.moved(), 0);
}

TEST(Reaction, SecondWorkerOfTheSameSpeedGetsHalfWhenBatchesTakeAMillisecond) {
  for (const int64_t delay_us : {50, 1000, 5000}) {
    SCOPED_TRACE(delay_us);
    World::Options options = InputBound(
        {{.service = milliseconds(1), .spread = 0.9}, {.service = milliseconds(1), .spread = 0.9}});
    options.weather.delay = std::chrono::microseconds(delay_us);
    options.weather.jitter = std::chrono::microseconds(delay_us);
    World world(options);
    world.RunFor(seconds(2));
    const int64_t first = world.worker(0).served(), second = world.worker(1).served();
    world.RunFor(seconds(8));
    const auto one = static_cast<double>(world.worker(0).served() - first);
    const auto two = static_cast<double>(world.worker(1).served() - second);
    EXPECT_GT(two, 0.8 * one);
    EXPECT_LT(two, 1.25 * one);
  }
}

TEST(Reaction, UnlikeWorkersAreAllBusy) {
  World world(InputBound({{.service = milliseconds(5)},
                          {.service = milliseconds(20)},
                          {.service = milliseconds(80)},
                          {.service = milliseconds(40), .threads = 4}}));
  world.RunFor(seconds(5));
  EXPECT_GE(Steps(&world, seconds(20)), 0.93 * (200 + 50 + 12.5 + 100));
}

TEST(Reaction, DeadWorkersTicketsAreIssuedAgainAtOnce) {
  World world(InputBound({{.service = milliseconds(50)}, {.service = milliseconds(50)}}));
  world.RunFor(seconds(5));
  const int64_t had = world.trainer(0).window().outstanding(1);
  ASSERT_GT(had, 5);
  world.CrashWorker(0, std::nullopt);
  world.RunFor(milliseconds(25));  // the broken connection is noticed within 20 ms
  EXPECT_EQ(world.trainer(0).window().outstanding(1), 0);
  EXPECT_GT(world.reissued(), 0);
  // What it had is what the other does next: the head does not wait for the rest of its queue.
  EXPECT_GE(Steps(&world, seconds(2)), 0.8 * 20);
}

TEST(Reaction, FrozenWorkerCostsThreeServiceTimesAtMost) {
  for (const base::Duration service : {milliseconds(10), milliseconds(400)}) {
    SCOPED_TRACE(base::ToSeconds(service));
    World world(InputBound({{.service = service}, {.service = service}, {.service = service}}));
    world.RunFor(seconds(20));
    ASSERT_EQ(world.reissued(), 0);
    world.FreezeWorker(0, seconds(60));
    const base::Duration delay = std::max<base::Duration>(milliseconds(200), 3 * service);
    // Until the head is one of its tickets, which is at most one round of the others; then the
    // delay, a tick, and the spread of service times.
    world.RunFor(delay + 4 * service + milliseconds(100));
    EXPECT_GT(world.reissued(), 0);
    EXPECT_TRUE(world.trainer(0).window().frozen(1));
    EXPECT_GE(Steps(&world, seconds(20)), 0.9 * 2 / base::ToSeconds(service));
    world.RunFor(seconds(45));
    EXPECT_FALSE(world.trainer(0).window().frozen(1));
    EXPECT_GE(Steps(&world, seconds(20)), 0.9 * 3 / base::ToSeconds(service));
  }
}

// Six workers could feed a step each 50 / 6 ms, the model takes 12 ms: five can cover for one.
TEST(Reaction, StragglerAtATenthOfItsSpeedCostsLittleWhereOthersCoverIt) {
  for (const int64_t window : {12, 64}) {
    SCOPED_TRACE(window);
    World::Options options =
        InputBound(std::vector<Worker::Options>(6, Worker::Options{.service = milliseconds(50)}));
    options.window = window;
    options.compute = milliseconds(12);
    World world(options);
    world.RunFor(seconds(5));
    const double before = Steps(&world, seconds(20));
    world.SetSpeed(3, 0.1);
    EXPECT_GE(Steps(&world, seconds(20)), before / 1.2);
    EXPECT_GE(Steps(&world, seconds(20)), before / 1.2);
  }
}

TEST(Reaction, StragglerStillContributesWhenEverybodyIsNeeded) {
  World world(InputBound(std::vector<Worker::Options>(4, {.service = milliseconds(20)})));
  world.RunFor(seconds(5));
  world.SetSpeed(0, 0.1);
  world.RunFor(seconds(10));
  EXPECT_GE(Steps(&world, seconds(20)), 0.9 * 3.1 * 50);
}

TEST(Reaction, LocalCoresShareByTheirRateWhenAllowedTo) {
  World::Options options = InputBound({{.service = milliseconds(10)}});
  options.local = {.service = milliseconds(20)};
  options.local_mode = Window::Local::kShares;
  World world(options);
  world.RunFor(seconds(3));
  EXPECT_GE(Steps(&world, seconds(10)), 0.93 * 150);
  options.local_mode = Window::Local::kLastResort;
  World alone(options);
  alone.RunFor(seconds(3));
  EXPECT_LE(Steps(&alone, seconds(10)), 105);
}

TEST(Reaction, RanksThatShareWorkersDoNotTakeThemForFrozen) {
  World::Options options =
      InputBound({{.service = milliseconds(100)}, {.service = milliseconds(100)}});
  options.ranks = 4;
  World world(options);
  world.RunFor(seconds(20));
  const int64_t before = world.duplicates(), steps = world.steps();
  world.RunFor(seconds(60));
  EXPECT_LE(world.duplicates() - before, (world.steps() - steps) * options.ranks / 20);
  EXPECT_GE(Steps(&world, seconds(20)), 0.9 * 20 / 4);
}

// All began with the same twelve workers, which then had work for a minute, while the others
// rested.
TEST(Reaction, ManyRanksShareManyWorkersEvenly) {
  World::Options options =
      InputBound(std::vector<Worker::Options>(200, {.service = milliseconds(200)}));
  options.ranks = 32;
  options.window = 24;
  World world(options);
  world.RunFor(seconds(2));
  // In lockstep, so as fast as the rank that gets least.
  EXPECT_GE(Steps(&world, seconds(5)), 0.7 * 200 / 0.2 / 32);
}

// Each asks every worker for two batches, 128 of them, of which a worker has room for eight.
TEST(Reaction, RanksAreServedInTurnByWorkersWithoutRoomForAllOfThem) {
  for (const int64_t memory : {1, 2, 8}) {
    SCOPED_TRACE(memory);
    World::Options options = InputBound(std::vector<Worker::Options>(
        4, {.service = milliseconds(20), .memory = memory, .sending = milliseconds(5)}));
    options.ranks = 64;
    options.window = 8;
    World world(options);
    world.RunFor(seconds(20));
    const double each = memory > 1 ? 0.020 : 0.025;  // one is sent before the next is begun
    EXPECT_GE(Steps(&world, seconds(20)), 0.8 * 4 / each / 64);
    EXPECT_LE(world.worker(0).most_held(), memory);
  }
}

// A way there and back that is longer than the shortest delay of issuing again.
TEST(Reaction, FarWorkerIsNotTakenForFrozenWithEveryTicket) {
  World::Options options =
      InputBound({{.service = milliseconds(10)},
                  {.service = milliseconds(10), .distance = milliseconds(150)}});
  options.window = 16;
  World world(options);
  world.RunFor(seconds(10));
  const int64_t reissued = world.reissued();
  EXPECT_GE(Rate(&world, 1, seconds(20)), 5);
  EXPECT_EQ(world.reissued(), reissued);
}

// By the time that a far worker is told so, it has begun what a near one without work takes.
TEST(Reaction, NearWorkerDoesNotTakeAgainAndAgainWhatAFarOneHasBegun) {
  World::Options options = InputBound({{.service = milliseconds(10), .distance = milliseconds(100)},
                                       {.service = milliseconds(10)}});
  options.window = 24;
  World world(options);
  world.RunFor(seconds(10));
  const int64_t duplicates = world.duplicates(), steps = world.steps();
  world.RunFor(seconds(60));
  EXPECT_LE(world.duplicates() - duplicates, (world.steps() - steps) / 50);
}

// Found by the simulator: with one worker, a ticket that it lost was never asked for again.
TEST(Reaction, TicketThatItsOnlyWorkerLostIsAskedForAgain) {
  World::Options options = InputBound({{.service = milliseconds(10)}});
  options.samples = 2000;
  options.weather.lose = 0.01;
  World world(options);
  EXPECT_TRUE(world.Run(seconds(3600))) << world.violation();
}

}  // namespace
}  // namespace hetero::feed::simulation
