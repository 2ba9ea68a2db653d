#include "runtime/compare/price_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/compare/comparison.h"

namespace hetero::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunReport RunWith(double rate, double dollars_per_hour, int64_t cpu_workers) {
  RunReport run;
  run.place = cpu_workers > 0 ? "out/with" : "out/alone";
  run.state = "Succeeded";
  run.config = nlohmann::json::object();
  run.samples_per_second = rate;
  if (dollars_per_hour > 0) run.dollars_per_hour = dollars_per_hour;
  run.cpu_workers = cpu_workers;
  return run;
}

// The published figures that the table is named after: a GPU machine of $1.408 alone and with a CPU
// machine of $0.816; 23 % more samples for a dollar are 1.94 times the rate.
TEST(PriceTable, HasTheRatiosOfThePublishedExample) {
  const PriceTable table = PriceTableOf({RunWith(500, 1.408, 0)}, {RunWith(971.5, 2.224, 1)});
  EXPECT_NEAR(*table.together.samples_per_second / *table.alone.samples_per_second, 1.943, 1e-3);
  EXPECT_NEAR(*table.together.dollars_per_hour / *table.alone.dollars_per_hour, 1.58, 1e-3);
  EXPECT_NEAR(*table.together.samples_per_dollar() / *table.alone.samples_per_dollar(), 1.23, 1e-3);
  EXPECT_TRUE(table.notes.empty());
  EXPECT_EQ(
      ToText(table),
      "price and performance, while training\n"
      "                      samples/s     $ per hour  $ per 1M samples      samples per $\n"
      "  trainers alone            500          1.408             0.782          1,278,409\n"
      "  with CPU workers  972 (1.94x)  2.224 (1.58x)     0.636 (0.81x)  1,572,572 (1.23x)\n");
}

TEST(PriceTable, TakesMediansOfPairsAndTellsTheirRange) {
  const PriceTable table =
      PriceTableOf({RunWith(100, 1, 0), RunWith(110, 1, 0), RunWith(90, 1, 0)},
                   {RunWith(200, 2, 1), RunWith(165, 2, 1), RunWith(270, 2, 1)});
  EXPECT_EQ(table.alone.samples_per_second, 100);
  EXPECT_EQ(table.together.samples_per_second, 200);
  EXPECT_EQ(table.least_ratio, 1.5);
  EXPECT_EQ(table.greatest_ratio, 3);
  EXPECT_THAT(ToText(table), HasSubstr("samples/s, pair by pair: 1.50x to 3.00x\n"));
  EXPECT_EQ(PairsVerdict(table),
            "With CPU workers 2.00x the samples per second: 1.50x to 3.00x pair by pair; a sample "
            "costs 1.00x as much with them.");
}

TEST(PriceTable, SeesNoDifferenceThatNotAllPairsShow) {
  const PriceTable table = PriceTableOf({RunWith(100, 0, 0), RunWith(100, 0, 0)},
                                        {RunWith(150, 0, 1), RunWith(90, 0, 1)});
  EXPECT_EQ(PairsVerdict(table),
            "Equally fast with and without CPU workers: 0.90x to 1.50x pair by pair.");
  EXPECT_EQ(PairsVerdict(PriceTableOf({RunWith(1, 0, 0)}, {RunWith(2, 0, 1)})), "");
}

TEST(PriceTable, SaysWhatItLacks) {
  EXPECT_THAT(PriceTableOf({RunWith(1, 0, 0)}, {RunWith(1, 0, 2)}).notes,
              ElementsAre(HasSubstr("no role has a pricePerHour")));
  EXPECT_THAT(PriceTableOf({RunWith(1, 1, 3)}, {RunWith(1, 1, 0)}).notes,
              ElementsAre(HasSubstr("has 3 CPU workers: it is no run of the trainers alone"),
                          HasSubstr("out/alone has no CPU workers")));
  RunReport unpriced = RunWith(1, 1, 2);
  unpriced.unpriced_roles = {"cpu"};
  EXPECT_THAT(PriceTableOf({RunWith(1, 1, 0)}, {unpriced}).notes,
              ElementsAre("not in the dollars: role cpu has no pricePerHour"));
}

TEST(PriceTable, IsPartOfAComparisonOfItsTwoSides) {
  const RunReport alone = RunWith(1, 1, 0);
  const RunReport together = RunWith(2, 2, 1);
  EXPECT_TRUE(Compare({alone, together}).prices);
  EXPECT_FALSE(Compare({together, alone}).prices);
  EXPECT_FALSE(Compare({alone, alone}).prices);
  EXPECT_FALSE(Compare({alone, together, together}).prices);
  RunReport failed = together;
  failed.state = "Failed";
  EXPECT_FALSE(Compare({alone, failed}).prices);
}

}  // namespace
}  // namespace hetero::compare
