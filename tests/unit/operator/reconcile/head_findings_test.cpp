// What a head says that it has found, as the operator keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "operator/reconcile/head_report.h"

namespace hetero::reconcile {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr int64_t kFirst = 1'700'000'000'500'000'000;  // ns since 1970

struct HeadFindings : ::testing::Test {
  HeadFindings() { builder.KnowReplicas({{"gpu", 2}, {"cpu", 2}}); }

  v1::Finding* Find(const std::string& rule, double cost = 1, const std::string& member = "") {
    v1::Finding* finding = status.add_findings();
    finding->set_rule(rule);
    finding->set_member(member);
    finding->set_seconds(cost);
    finding->set_first_unix_ns(kFirst);
    finding->set_active(true);
    return finding;
  }
  // Whether it is worth telling at once.
  bool Hear(base::Duration after_start) {
    status.set_state(v1::JobStatus::RUNNING);
    return builder.Heard(status, base::Instant(seconds(1000)) + after_start,
                         base::WallTime(seconds(1000)) + after_start);
  }
  const std::vector<api::JobFinding>& kept() const { return builder.report().findings; }
  std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const api::JobFinding& finding : kept()) names.push_back(finding.rule);
    return names;
  }

  HeadReportBuilder builder{"vit", 1};
  v1::JobStatus status;
};

TEST_F(HeadFindings, AreCarriedWhole) {
  v1::Finding* finding = Find("SlowWorker", 12.345678, "cpu-1");
  finding->set_message("it is slow");
  finding->set_remedy("look at its node");
  finding->set_field("roles.cpu.replicas");
  finding->set_dollars(0.123456);
  EXPECT_TRUE(Hear(seconds(0)));
  const api::JobFinding wanted = {.rule = "SlowWorker",
                                  .message = "it is slow",
                                  .remedy = "look at its node",
                                  .field = "roles.cpu.replicas",
                                  .member = "cpu-1",
                                  .seconds = 12.3,
                                  .dollars = 0.1235,
                                  .since = base::WallTime(seconds(1'700'000'000)),
                                  .active = true};
  EXPECT_THAT(kept(), ElementsAre(wanted));
}

TEST_F(HeadFindings, FiguresAreAMinuteOldAtMostAndAllElseIsToldAtOnce) {
  Find("InputBound", 1);
  Hear(seconds(0));
  status.mutable_findings(0)->set_seconds(2);
  status.mutable_findings(0)->set_message("other figures");
  EXPECT_FALSE(Hear(seconds(59)));
  EXPECT_EQ(kept()[0].seconds, 1);
  EXPECT_FALSE(Hear(seconds(60))) << "figures are never urgent";
  EXPECT_EQ(kept()[0].seconds, 2);
  EXPECT_EQ(kept()[0].message, "other figures");

  status.mutable_findings(0)->set_seconds(3);
  status.mutable_findings(0)->set_active(false);
  EXPECT_TRUE(Hear(seconds(61)));
  EXPECT_EQ(kept()[0].seconds, 3);
  EXPECT_FALSE(kept()[0].active);
  Find("SlowRank", 1, "gpu-0");
  EXPECT_TRUE(Hear(seconds(62)));
  status.mutable_findings(1)->set_member("gpu-1");
  EXPECT_TRUE(Hear(seconds(63)));
  EXPECT_EQ(kept()[1].member, "gpu-1");
  status.mutable_findings()->SwapElements(0, 1);
  EXPECT_FALSE(Hear(seconds(64))) << "the order follows the figures";
  EXPECT_THAT(rules(), ElementsAre("InputBound", "SlowRank"));
  EXPECT_FALSE(Hear(seconds(123)));
  EXPECT_THAT(rules(), ElementsAre("SlowRank", "InputBound"));
}

TEST_F(HeadFindings, TheLastFiguresAreNotPutOff) {
  Find("InputBound", 1);
  Hear(seconds(0));
  status.mutable_findings(0)->set_seconds(2);
  for (const v1::JobStatus::State state :
       {v1::JobStatus::SUCCEEDED, v1::JobStatus::FAILED, v1::JobStatus::STOPPED}) {
    HeadReportBuilder other = builder;
    status.set_state(state);
    other.Heard(status, base::Instant(seconds(1001)), base::WallTime(seconds(1001)));
    EXPECT_EQ(other.report().findings[0].seconds, 2) << v1::JobStatus::State_Name(state);
  }
}

// Its image is the user's, so a head may say anything.
TEST_F(HeadFindings, AreNoMoreThanAStatusHolds) {
  Find("", 1);
  for (int i = 0; i < 20; ++i) {
    v1::Finding* finding = Find("Rule" + std::to_string(i / 2), -1, std::string(1000, 'm'));
    for (std::string* text : {finding->mutable_message(), finding->mutable_remedy(),
                              finding->mutable_field(), finding->mutable_rule()}) {
      *text += std::string(5000, 'x');
    }
    finding->set_message("\xC3\xA4" + finding->message());
    finding->set_dollars(std::numeric_limits<double>::quiet_NaN());
    finding->set_first_unix_ns(std::numeric_limits<int64_t>::min());
  }
  Hear(seconds(0));
  ASSERT_EQ(kept().size(), 5u);
  for (const api::JobFinding& finding : kept()) {
    EXPECT_EQ(finding.rule.size(), 63u);
    EXPECT_EQ(finding.message.size(), 1024u);
    EXPECT_EQ(finding.remedy.size(), 1024u);
    EXPECT_EQ(finding.field.size(), 256u);
    EXPECT_EQ(finding.member.size(), 64u);
    EXPECT_EQ(finding.seconds, std::nullopt);
    EXPECT_EQ(finding.dollars, std::nullopt);
    EXPECT_EQ(finding.since, base::WallTime());
  }
  EXPECT_TRUE(kept()[1].rule.starts_with("Rule1")) << "the same twice is one";
  api::JobStatus whole;
  whole.findings = kept();
  EXPECT_EQ(*api::StatusFromJson(api::StatusToJson(whole)), whole);
}

}  // namespace
}  // namespace hetero::reconcile
