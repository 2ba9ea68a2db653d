#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/insight/rules/rule.h"
#include "tests/unit/runtime/insight/rules/examples.h"

namespace hetero::insight {
namespace {

using ::testing::HasSubstr;

std::string Problem(const Settings& settings) {
  return std::string(CheckSettings(settings).message());
}

TEST(RuleSettingsTest, EveryRuleAndThresholdMayBeSet) {
  Settings settings;
  for (const Rule& rule : AllRules()) {
    RuleSettings& of_rule = settings[std::string(rule.name)];
    for (const Threshold& threshold : rule.thresholds) {
      of_rule.thresholds[std::string(threshold.name)] = 0;
    }
  }
  EXPECT_TRUE(CheckSettings(settings).ok()) << CheckSettings(settings).message();
  EXPECT_TRUE(CheckSettings({}).ok());
}

TEST(RuleSettingsTest, AnUnknownRuleIsNamedWithTheNearest) {
  EXPECT_EQ(Problem({{"InputBond", {}}}),
            "InputBond: there is no such rule; did you mean InputBound?");
}

TEST(RuleSettingsTest, WithoutANearOneAllAreNamed) {
  const std::string problem = Problem({{"Weather", {}}});
  for (const Rule& rule : AllRules()) EXPECT_THAT(problem, HasSubstr(std::string(rule.name)));
}

TEST(RuleSettingsTest, AnUnknownThresholdIsNamedWithThoseOfItsRule) {
  EXPECT_EQ(Problem({{"SlowRank", {.thresholds = {{"slowerThen", 2}}}}}),
            "SlowRank.slowerThen: the rule has no such threshold; did you mean slowerThan?");
  EXPECT_EQ(Problem({{"SlowRank", {.thresholds = {{"minutes", 2}}}}}),
            "SlowRank.minutes: the rule has no such threshold; known are slowerThan, lostPercent");
}

TEST(RuleSettingsTest, ValuesAreNumbersOfAtLeastZero) {
  EXPECT_EQ(Problem({{"SlowRank", {.thresholds = {{"slowerThan", -1}}}}}),
            "SlowRank.slowerThan: -1 is not a number of at least 0");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(CheckSettings({{"SlowRank", {.thresholds = {{"slowerThan", nan}}}}}).ok());
}

TEST(RuleSettingsTest, AllProblemsComeTogether) {
  const absl::Status status =
      CheckSettings({{"Weather", {}}, {"SlowRank", {.thresholds = {{"slowerThan", -1}}}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("SlowRank.slowerThan"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nWeather"));
}

TEST(RuleSettingsTest, AnIgnoredRuleFindsAndExplainsNothing) {
  const Evidence evidence = ExampleOf("SlowWorker");
  const std::vector<Finding> all = Judge(evidence, {});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rule, "SlowWorker");
  EXPECT_EQ(all[1].rule, "InputBound");
  const std::vector<Finding> left = Judge(evidence, {{"SlowWorker", {.ignored = true}}});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].rule, "InputBound");
}

}  // namespace
}  // namespace hetero::insight
