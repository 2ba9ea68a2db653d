#include "tests/unit/runtime/insight/rules/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/insight/rules/rule.h"
#include "tests/unit/runtime/insight/rules/shapes.h"

namespace hetero::insight {
namespace {

// Thresholds were chosen with seeds 1 to 20, which no test uses.
constexpr uint64_t kFirstSeed = 10001;
constexpr int kSeeds = 20;
constexpr int kMostWrong = 1;

std::string Told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += "  " + finding.rule + " " + std::to_string(finding.seconds) + " s: " + finding.message +
            "\n";
  }
  return text.empty() ? "  nothing\n" : text;
}

class CauseTest : public ::testing::TestWithParam<Cause> {};

TEST_P(CauseTest, IsTheFirstFinding) {
  const Cause& cause = GetParam();
  int wrong = 0;
  std::string told;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const std::vector<Finding> findings = Judge(Play(cause.job(seed), seed), {});
    if (!findings.empty() && findings[0].rule == cause.rule &&
        findings[0].message.find(cause.words) != std::string::npos) {
      continue;
    }
    ++wrong;
    told += "seed " + std::to_string(seed) + ":\n" + Told(findings);
  }
  EXPECT_LE(wrong, kMostWrong) << told;
}

INSTANTIATE_TEST_SUITE_P(Every, CauseTest, ::testing::ValuesIn(AllCauses()),
                         [](const auto& tested) { return tested.param.name; });

using Shape = PlayedJob (*)(uint64_t seed);

class UndisturbedTest : public ::testing::TestWithParam<std::pair<std::string, Shape>> {};

TEST_P(UndisturbedTest, NothingIsFound) {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const std::vector<Finding> findings = Judge(Play(GetParam().second(seed), seed), {});
    EXPECT_TRUE(findings.empty()) << "seed " << seed << ":\n" << Told(findings);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, UndisturbedTest,
                         ::testing::Values(std::pair<std::string, Shape>("Gpu", BalancedGpuJob),
                                           std::pair<std::string, Shape>("Cpu", CpuOnlyJob),
                                           std::pair<std::string, Shape>("Script", ScriptJob)),
                         [](const auto& tested) { return tested.param.first; });

}  // namespace
}  // namespace hetero::insight
