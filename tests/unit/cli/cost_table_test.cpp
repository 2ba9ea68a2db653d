#include "cli/cost_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

JobView View(const std::string& name, const std::string& cost, const std::string& policy = "{}") {
  json object = {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", name}}},
                 {"spec", {{"runPolicy", json::parse(policy)}}},
                 {"status", {{"observedGeneration", 1}}}};
  object["status"]["conditions"] = json::parse(R"([{"type": "Running", "status": "True",
      "reason": "TrainingStarted", "lastTransitionTime": "2026-01-01T10:00:00Z"}])");
  if (!cost.empty()) object["status"]["cost"] = json::parse(cost);
  return ViewOf(object).value();
}

constexpr char kCost[] = R"({"dollars": 152.6, "onDemandDollars": 182.6, "waitingDollars": 12.3,
  "perMillionSamples": 0.42, "uncertainDollars": 0.12, "uncertainSeconds": 240,
  "asOf": "2026-01-01T12:00:00Z", "incarnation": 7, "pricelessPods": 2, "roles": [
  {"name": "head", "pods": 1, "podHours": 2, "dollars": 0.2, "ledger": {"gonePods": 1}},
  {"name": "cpu", "pods": 6, "podHours": 10.5, "dollars": 8.4, "onDemandDollars": 38.4},
  {"name": "gpu", "pods": 2, "podHours": 4, "dollars": 144, "waitingDollars": 12.3},
  {"name": "eval", "pods": 2, "podHours": 1, "pricelessPods": 2}]})";

base::WallTime Now() { return api::ParseTime("2026-01-01T12:00:14Z").value(); }

TEST(CostTableTest, OneJob) {
  EXPECT_EQ(CostOfJob(View("vit", kCost, R"({"maxDollars": "250.00"})"), Now(), {.width = 100}),
            "team/vit  Running  as of 2026-01-01T12:00:00Z, 14s ago\n"
            "\n"
            "ROLE   PODS  POD-HOURS  PER HOUR  DOLLARS  WAITING\n"
            "head   1     2.00       0.10      0.20     -\n"
            "cpu    6     10.50      0.80      8.40     -\n"
            "gpu    2     4.00       36.00     144.00   12.30\n"
            "eval   2     1.00       -         0.00     -\n"
            "total  11    17.50                152.60   12.30\n"
            "\n"
            "on demand           182.60 dollars: 30.00 (16.4 %) saved\n"
            "waiting for data    12.30 dollars, 8.1 % of all\n"
            "per million samples 0.42 dollars\n"
            "budget              250.00 dollars: 61.0 % spent\n"
            "uncertain           0.12 dollars: of 240 pod seconds nobody saw whether the pod still "
            "ran\n"
            "not counted         2 pods have no price and cost more than this says: state "
            "pricePerHour of their\n"
            "                    roles, or have the operator given a price sheet\n");
}

TEST(CostTableTest, WhatIsNotKnownIsNotSaid) {
  const std::string text = CostOfJob(
      View("vit", R"({"dollars": 0.0012, "roles": [{"name": "gpu", "pods": 1, "podHours": 0.1,
                      "dollars": 0.0012}]})"),
      Now(), {});
  for (const char* absent : {"on demand", "uncertain", "not counted", "budget", "per million"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
  EXPECT_THAT(text, HasSubstr("0.001200"));  // less than a cent is not nothing
  EXPECT_THAT(CostOfJob(View("vit", ""), Now(), {}), HasSubstr("nothing of it has a price"));
}

TEST(CostTableTest, AllJobsAndTheirSum) {
  const std::string text = CostOfJobs(
      {View("vit", kCost), View("small", R"({"dollars": 1.5, "roles": []})"), View("free", "")},
      {.style = {.width = 0}, .namespaces = true});
  EXPECT_EQ(text,
            "NAMESPACE  NAME   STATE    POD-HOURS  DOLLARS  ON-DEMAND  WAITING  PER-MILLION  "
            "UNCERTAIN  MISSING\n"
            "team       vit    Running  17.50      152.60   182.60     12.30    0.42         "
            "0.12       2 pods\n"
            "team       small  Running  0.00       1.50     1.50       -        -            "
            "0.00       -\n"
            "team       free   Running  -          -        -          -        -            "
            "-          -\n"
            "           total           17.50      154.10   184.10     12.30                 "
            "0.12\n"
            "1 job has no price and is not in the total\n");
}

TEST(CostTableTest, JsonHasWhatIsForPeople) {
  const json one = CostJson(View("vit", kCost));
  EXPECT_EQ(one["name"], "vit");
  EXPECT_EQ(one["cost"]["dollars"], 152.6);
  EXPECT_EQ(one["cost"]["roles"][2]["waitingDollars"], 12.3);
  EXPECT_FALSE(one["cost"].contains("incarnation"));
  EXPECT_FALSE(one["cost"]["roles"][0].contains("ledger"));
  const json all = CostsJson({View("vit", kCost), View("free", "")});
  EXPECT_EQ(all["dollars"], 152.6);
  EXPECT_EQ(all["jobsWithoutPrice"], 1);
  EXPECT_TRUE(all["items"][1]["cost"].is_null());
}

}  // namespace
}  // namespace hetero::cli
