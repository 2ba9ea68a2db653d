#include "api/failure_decision.h"

#include <gtest/gtest.h>

namespace hetero::api {
namespace {

Role WithRules() {
  Role role;
  role.name = "gpu";
  role.failure_rules.resize(3);
  role.failure_rules[0].action = FailureAction::kFailJob;
  role.failure_rules[0].on_exit_codes = ExitCodes{ExitCodeOperator::kIn, {3, 4}};
  role.failure_rules[1].action = FailureAction::kIgnore;
  role.failure_rules[1].on_reason = FailureReason::kOomKilled;
  role.failure_rules[2].action = FailureAction::kRestartGang;
  role.failure_rules[2].on_exit_codes = ExitCodes{ExitCodeOperator::kNotIn, {137}};
  return role;
}

TEST(FailureDecisionTest, TheFirstRuleThatMatchesDecides) {
  const Role role = WithRules();
  const FailureDecision listed = DecideFailure(role, {.exit_code = 4, .reason = "OOMKilled"});
  EXPECT_EQ(listed.action, FailureAction::kFailJob);
  EXPECT_EQ(listed.rule, 0u);
  EXPECT_EQ(DecideFailure(role, {.exit_code = 137, .reason = "OOMKilled"}).rule, 1u);
  EXPECT_EQ(DecideFailure(role, {.exit_code = 9, .reason = "Error"}).rule, 2u);
  EXPECT_EQ(DescribeRule(role, 0), "failureRules[0] of role gpu says FailJob");
}

TEST(FailureDecisionTest, WithoutARuleTheScopeDecides) {
  Role role = WithRules();
  const FailureFacts killed{.exit_code = 137, .reason = "Error"};
  EXPECT_EQ(DecideFailure(role, killed).rule, std::nullopt);
  EXPECT_EQ(DecideFailure(role, killed).action, FailureAction::kRestartPod);
  role.restart_scope = RestartScope::kGang;
  EXPECT_EQ(DecideFailure(role, killed).action, FailureAction::kRestartGang);
  EXPECT_EQ(DecideFailure(role, {.reason = "Lost"}).rule, std::nullopt) << "no code, no match";
}

TEST(FailureDecisionTest, AFailureIsDescribedAlikeEverywhere) {
  EXPECT_EQ(DescribeFailure("gpu-1", {.exit_code = 137, .reason = "OOMKilled"}),
            "gpu-1 failed: OOMKilled, exit code 137");
  EXPECT_EQ(DescribeFailure("gpu-1", {.reason = "Lost"}), "gpu-1 failed: Lost");
}

}  // namespace
}  // namespace hetero::api
