#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/compare/comparison.h"
#include "tests/unit/runtime/compare/sample_runs.h"

namespace hetero::compare {
namespace {

TEST(ComparisonJson, HasEveryFigure) {
  const nlohmann::json json = nlohmann::json::parse(
      ToJson(Compare({ReadRun(ReportOfSlowRun(), "slow"), ReadRun(ReportOfFastRun(), "fast")})));
  ASSERT_EQ(json["runs"].size(), 2u);
  const nlohmann::json& fast = json["runs"][1];
  EXPECT_EQ(fast["place"], "fast");
  EXPECT_EQ(fast["samplesPerSecond"], 1200);
  EXPECT_EQ(fast["samplesPerSecondRatio"], 1.875);
  EXPECT_EQ(fast["noiseMeasured"], true);
  EXPECT_EQ(fast["cpuWorkers"], 4);
  EXPECT_DOUBLE_EQ(fast["dollarsPerHour"], 4 * 0.816 + 1.408);
  EXPECT_EQ(fast["phaseSeconds"]["backward"], 30.183);
  EXPECT_EQ(json["differences"][1]["path"], "roles[cpu].replicas");
  EXPECT_EQ(json["differences"][1]["values"], nlohmann::json({2, 4}));
  EXPECT_EQ(json["differences"][0]["values"][0], nullptr);
  EXPECT_EQ(json["equalInput"], false);
  EXPECT_EQ(json["fastest"], 1);
  EXPECT_FALSE(json.contains("prices"));
}

TEST(ComparisonJson, LeavesOutWhatIsNotKnown) {
  const RunReport least = ReadRun({{"job", "a"}, {"state", "Stopped"}});
  const nlohmann::json json = nlohmann::json::parse(ToJson(Compare({least, least})));
  for (const char* absent : {"differences", "equalInput", "fastest", "cheapest", "prices"}) {
    EXPECT_FALSE(json.contains(absent)) << absent;
  }
  EXPECT_FALSE(json["runs"][0].contains("samplesPerSecond"));
}

}  // namespace
}  // namespace hetero::compare
