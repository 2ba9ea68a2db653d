// The ticket logic of trainers against workers and a network that do what they like, in virtual
// time: every step is filled with its own batch, no sample is lost or repeated, the window stays in
// its byte budget, and every job ends. A seed is a whole world; one that fails prints its trace.
//   HETERO_SIMULATOR_SEEDS=100000 simulator_test     how many (make soak)
//   HETERO_SIMULATOR_FIRST_SEED=4711                 from which one on
// One of kSmallForALarge worlds more has 64 ranks, 500 workers and a head.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "simulation/world.h"

namespace hetero::feed::simulation {
namespace {

constexpr int64_t kSeeds = 2000;
constexpr uint64_t kSmallForALarge = 1000;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::atoll(value) : otherwise;
}

// Runs the world that `draw` makes of `seed`; again with a trace if a rule was broken.
::testing::AssertionResult Holds(uint64_t seed, World::Options (*draw)(uint64_t, bool)) {
  World world(draw(seed, /*tracing=*/false));
  const bool held = world.Run();
  if (world.generations() > 0) {
    std::cout << "seed " << seed << ": " << world.steps() << " steps in "
              << base::ToSeconds(world.elapsed()) << " s, " << world.generations()
              << " generations, " << world.heads() << " heads, " << world.reissued()
              << " tickets issued again, " << world.duplicates() << " duplicates" << std::endl;
  }
  if (held) return ::testing::AssertionSuccess();
  World again(draw(seed, /*tracing=*/true));
  again.Run();
  return ::testing::AssertionFailure()
         << again.trace() << "seed " << seed << ": " << world.violation();
}

TEST(Simulator, EveryStepIsFilledAndNoSampleIsLostOrRepeatedWhateverHappens) {
  const auto first = static_cast<uint64_t>(FromEnvironment("HETERO_SIMULATOR_FIRST_SEED", 0));
  const auto seeds = static_cast<uint64_t>(FromEnvironment("HETERO_SIMULATOR_SEEDS", kSeeds));
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    ASSERT_TRUE(Holds(seed, World::Draw));
    if ((seed - first + 1) % 10'000 == 0) std::cout << seed - first + 1 << " seeds" << std::endl;
  }
}

TEST(Simulator, FiveHundredWorkersAndSixtyFourRanksThatComeAndGo) {
  const auto first = static_cast<uint64_t>(FromEnvironment("HETERO_SIMULATOR_FIRST_SEED", 0));
  const auto seeds = static_cast<uint64_t>(FromEnvironment("HETERO_SIMULATOR_SEEDS", kSeeds));
  const uint64_t large = (seeds + kSmallForALarge - 1) / kSmallForALarge;
  for (uint64_t seed = first; seed < first + large; ++seed) {
    ASSERT_TRUE(Holds(seed, World::DrawLarge));
  }
}

TEST(Simulator, TheSameSeedIsTheSameRun) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World one(World::Draw(seed)), other(World::Draw(seed));
    one.Run();
    other.Run();
    EXPECT_EQ(one.elapsed(), other.elapsed()) << seed;
    EXPECT_EQ(one.reissued(), other.reissued()) << seed;
    EXPECT_EQ(one.duplicates(), other.duplicates()) << seed;
  }
}

}  // namespace
}  // namespace hetero::feed::simulation
