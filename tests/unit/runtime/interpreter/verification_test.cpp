#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/runtime/interpreter/functions.h"

namespace hetero::interpreter {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSamples = 5000;
constexpr int kThreads = 3;

// Each is a function of its arguments but for what its name says.
constexpr char kSource[] = R"(
calls = 0
seen = set()
def pure(sample, rng):
  return {'image': sample['image'] ^ rng.integers(0, 256, (4, 5, 3), np.uint8)}
def counts(sample, rng):
  global calls
  calls += 1
  return {'image': np.full((4, 5, 3), calls % 251, np.uint8)}
def remembers(sample, rng):
  value = int(sample['image'][0, 0, 0]) % 16
  made = sample['image'] + np.uint8(len(seen))
  seen.add(value)
  return {'image': made}
def draws(sample, rng):
  return {'image': np.random.default_rng().integers(0, 256, (4, 5, 3), np.uint8)}
def draws_of_the_old_generator(sample, rng):
  return {'image': np.random.randint(0, 256, (4, 5, 3), np.uint8)}
def looks_at_the_clock(sample, rng):
  return {'image': np.full((4, 5, 3), time.monotonic_ns() // 1000 % 251, np.uint8)}
)";

// Calls of several threads, until a function is found to be none; how many there were.
int64_t CallsUntilFound(const Interpreters& interpreters, int64_t seed) {
  std::atomic<int64_t> calls = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      while (interpreters.irreproducible().empty()) {
        const int64_t call = calls++;
        if (call >= kSamples) return;
        EXPECT_TRUE(Call(interpreters, 0, seed * kSamples + call).ok());
      }
    });
  }
  threads.clear();
  return std::min(calls.load(), kSamples);
}

void ExpectFound(const std::string& name, int64_t runs) {
  const Functions functions(kSource);
  for (int64_t run = 0; run < runs; ++run) {
    const auto interpreters = functions.Start({name});
    ASSERT_TRUE(interpreters.ok()) << interpreters.status();
    EXPECT_LT(CallsUntilFound(**interpreters, run), kSamples) << "run " << run;
    EXPECT_THAT((*interpreters)->irreproducible(), HasSubstr(name));
  }
}

void ExpectNothingFound(int64_t runs) {
  const Functions functions(kSource);
  for (int64_t run = 0; run < runs; ++run) {
    const auto interpreters = functions.Start({"pure"});
    ASSERT_TRUE(interpreters.ok()) << interpreters.status();
    EXPECT_EQ(CallsUntilFound(**interpreters, run), kSamples);
  }
}

class VerificationTest : public ::testing::TestWithParam<const char*> {};

TEST_P(VerificationTest, FindsWhatIsNoFunctionOfItsArguments) { ExpectFound(GetParam(), 2); }
TEST_P(VerificationTest, FindsItInEachOfTwentyRuns) { ExpectFound(GetParam(), 20); }

INSTANTIATE_TEST_SUITE_P(Impure, VerificationTest,
                         ::testing::Values("counts", "remembers", "draws",
                                           "draws_of_the_old_generator", "looks_at_the_clock"),
                         [](const auto& info) { return std::string(info.param); });

TEST(FunctionsTest, FindsNothingInAFunction) { ExpectNothingFound(2); }
TEST(FunctionsTest, FindsNothingInTwentyRuns) { ExpectNothingFound(20); }

TEST(FunctionsTest, FindsTheSecondOfTwo) {
  const Functions functions(kSource);
  const auto interpreters = functions.Start({"pure", "counts"});
  ASSERT_TRUE(interpreters.ok()) << interpreters.status();
  for (int64_t sample = 0; sample < 40; ++sample) {
    EXPECT_TRUE(Call(**interpreters, 0, sample).ok());
    EXPECT_TRUE(Call(**interpreters, 1, sample).ok());
  }
  EXPECT_THAT((*interpreters)->irreproducible(), HasSubstr("functions.counts"));
}

TEST(FunctionsTest, AsksForNothingTwiceWhenItIsOff) {
  const Functions functions(kSource);
  const auto interpreters = functions.Start({"draws"}, {.verifies = false});
  ASSERT_TRUE(interpreters.ok()) << interpreters.status();
  EXPECT_EQ(CallsUntilFound(**interpreters, 0), kSamples);
}

}  // namespace
}  // namespace hetero::interpreter
