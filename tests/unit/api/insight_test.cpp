// spec.insight: which rules are asked, and what they compare with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "api/finding_rules.h"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Rules(const std::string& rules) { return "insight.rules=[" + rules + "]"; }

std::string ErrorsOfRules(const std::string& rules) { return ErrorsOf({Rules(rules)}); }

// A rule that has a threshold.
const RuleRow& Judging() {
  for (const RuleRow& row : FindingRules()) {
    if (!row.thresholds.empty()) return row;
  }
  ADD_FAILURE() << "no rule has a threshold";
  return FindingRules().front();
}

std::string Named(const std::string& name) { return "{name: " + name + "}"; }

TEST(InsightTest, AbsentIsNothing) {
  EXPECT_FALSE(ParseManifest(kSmallest).job.spec.insight.has_value());
  EXPECT_EQ(ToJson(ParseManifest(kSmallest).job).find("insight"), std::string::npos);
}

TEST(InsightTest, RulesAreReportedUnlessTheySayOtherwise) {
  const std::string threshold = Judging().thresholds.front().name;
  const ManifestResult result = ParseManifest(
      kSmallest,
      {Rules("{name: LossNotFinite, action: Ignore}, {name: " + std::string(Judging().name) +
             ", thresholds: [{name: " + threshold + ", value: 12.5}]}")});
  ASSERT_EQ(FormatErrors(result.errors), "");
  const std::vector<InsightRule>& rules = result.job.spec.insight->rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "LossNotFinite");
  EXPECT_EQ(rules[0].action, RuleAction::kIgnore);
  EXPECT_EQ(rules[1].action, RuleAction::kReport);
  ASSERT_EQ(rules[1].thresholds.size(), 1u);
  EXPECT_EQ(rules[1].thresholds[0].name, threshold);
  EXPECT_EQ(rules[1].thresholds[0].value, 12.5);
}

TEST(InsightTest, AnUnknownRuleNamesTheNearest) {
  EXPECT_THAT(ErrorsOfRules(Named("InputBuond")),
              HasSubstr("spec.insight.rules[0].name: no rule is called 'InputBuond'; did you mean "
                        "InputBound?"));
  EXPECT_THAT(
      ErrorsOfRules(Named("LossNotFinite") + ", " + Named("Weather")),
      AllOf(HasSubstr("spec.insight.rules[1].name: no rule is called 'Weather'; there are "),
            HasSubstr("InputBound, "), HasSubstr("LossNotFinite")));
}

TEST(InsightTest, AnUnknownThresholdNamesTheRules) {
  const std::string rule = Judging().name;
  const std::string known = Judging().thresholds.front().name;
  const std::string typo = known.substr(0, known.size() - 1);
  const auto with = [&rule](const std::string& thresholds) {
    return "{name: " + rule + ", thresholds: [" + thresholds + "]}";
  };
  EXPECT_THAT(ErrorsOfRules(with("{name: " + typo + ", value: 1}")),
              HasSubstr("spec.insight.rules[0].thresholds[0].name: no threshold of " + rule +
                        " is called '" + typo + "'; did you mean " + known + "?"));
  EXPECT_THAT(ErrorsOfRules(with("{name: weather, value: 1}")), HasSubstr("; there are " + known));
}

TEST(InsightTest, EachIsNamedOnce) {
  const std::string rule = Judging().name;
  const std::string threshold = Judging().thresholds.front().name;
  EXPECT_THAT(ErrorsOfRules(Named(rule) + ", " + Named(rule)),
              HasSubstr("spec.insight.rules[1].name: '" + rule +
                        "' is the name of spec.insight.rules[0] too"));
  const std::string twice = "{name: " + threshold + ", value: 1}";
  EXPECT_THAT(ErrorsOfRules("{name: " + rule + ", thresholds: [" + twice + ", " + twice + "]}"),
              HasSubstr("spec.insight.rules[0].thresholds[1].name: '" + threshold +
                        "' is the name of spec.insight.rules[0].thresholds[0] too"));
}

TEST(InsightTest, ValuesAreFiniteNumbersFromZero) {
  const auto value = [](const std::string& text) {
    return ErrorsOfRules("{name: " + std::string(Judging().name) + ", thresholds: [{name: " +
                         Judging().thresholds.front().name + ", value: " + text + "}]}");
  };
  constexpr char kPath[] = "spec.insight.rules[0].thresholds[0].value: must be ";
  EXPECT_EQ(value("0"), "");
  EXPECT_EQ(value("1.0e+15"), "");
  for (const char* wrong : {"-0.5", "1.1e+15", ".inf", ".nan", "1.0e+999", "'3'", "true"}) {
    EXPECT_THAT(value(wrong), HasSubstr(kPath)) << wrong;
  }
}

TEST(InsightTest, WrongShapesAreNamed) {
  EXPECT_THAT(ErrorsOfRules("{name: InputBound, action: Tell}"),
              HasSubstr("spec.insight.rules[0].action: must be one of Report, Ignore, got"));
  EXPECT_THAT(ErrorsOfRules("{action: Ignore}"),
              HasSubstr("spec.insight.rules[0].name: is required"));
  EXPECT_THAT(ErrorsOfRules("{name: InputBound, thresholds: []}"),
              HasSubstr("spec.insight.rules[0].thresholds: has 0 entries; at least 1"));
  EXPECT_THAT(ErrorsOfRules("{name: InputBound, treshold: 1}"),
              HasSubstr("spec.insight.rules[0].treshold: unknown field; did you mean thresholds?"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i > 0 ? ", " : "") + Named("InputBound");
  EXPECT_THAT(ErrorsOfRules(many), StartsWith("spec.insight.rules: has 65 entries; at most 64"));
}

TEST(FindingRulesTest, NamesAreTakenOnceAndWhatTheManifestTakes) {
  std::set<std::string> rules;
  for (const RuleRow& row : FindingRules()) {
    EXPECT_TRUE(rules.insert(row.name).second) << row.name;
    EXPECT_EQ(FindRule(row.name), &row);
    EXPECT_NE(std::string(row.meaning), "") << row.name;
    EXPECT_LE(row.thresholds.size(), 16u) << row.name;
    std::string all;
    std::set<std::string> names;
    for (const ThresholdRow& threshold : row.thresholds) {
      EXPECT_TRUE(names.insert(threshold.name).second) << row.name << " " << threshold.name;
      EXPECT_EQ(DefaultThreshold(row.name, threshold.name), threshold.value);
      EXPECT_NE(std::string(threshold.meaning), "") << row.name << " " << threshold.name;
      all += (all.empty() ? "" : ", ") + ("{name: " + std::string(threshold.name) +
                                          ", value: " + std::to_string(threshold.value) + "}");
    }
    EXPECT_EQ(ErrorsOfRules("{name: " + std::string(row.name) +
                            (all.empty() ? "" : ", thresholds: [" + all + "]") + "}"),
              "");
  }
  EXPECT_LE(rules.size(), 64u) << "a manifest can name all";
  EXPECT_EQ(FindRule("Weather"), nullptr);
}

}  // namespace
}  // namespace hetero::api
