#include "api/price_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/paths.h"

namespace hetero::api {
namespace {

using ::testing::HasSubstr;

constexpr char kSheet[] = R"(
currency: USD
region: eu-central-1
date: 2026-11-01
instanceTypes:
  m6i.4xlarge: {onDemand: "0.92", spot: "0.31"}
  p4d.24xlarge: {onDemand: 32.7726}
  rented: {spot: 1}
)";

TEST(PriceSheetTest, TheExampleIsOne) {
  std::ifstream file(testing::SourceDir() + "/examples/prices/us-east-1.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const absl::StatusOr<PriceSheet> sheet = ParsePriceSheet(text.str());
  ASSERT_TRUE(sheet.ok()) << sheet.status();
  EXPECT_EQ(sheet->region, "us-east-1");
  EXPECT_TRUE(sheet->Find("m6i.4xlarge", /*spot=*/true).has_value());
}

TEST(PriceSheetTest, PricesAreByInstanceTypeAndCapacity) {
  const absl::StatusOr<PriceSheet> sheet = ParsePriceSheet(kSheet);
  ASSERT_TRUE(sheet.ok()) << sheet.status();
  EXPECT_EQ(sheet->region, "eu-central-1");
  EXPECT_EQ(sheet->date, "2026-11-01");
  EXPECT_EQ(sheet->Find("m6i.4xlarge", false), (NodePrice{920'000, 920'000}));
  EXPECT_EQ(sheet->Find("m6i.4xlarge", true), (NodePrice{310'000, 920'000}));
  EXPECT_EQ(sheet->Find("p4d.24xlarge", false), (NodePrice{32'772'600, 32'772'600}));
  // What it does not say is not guessed.
  EXPECT_EQ(sheet->Find("p4d.24xlarge", true), std::nullopt);
  EXPECT_EQ(sheet->Find("rented", false), std::nullopt);
  EXPECT_EQ(sheet->Find("rented", true), (NodePrice{1'000'000, 1'000'000}));
  EXPECT_EQ(sheet->Find("unknown", false), std::nullopt);
  EXPECT_EQ(sheet->Find("", false), std::nullopt);
}

std::string Mistake(const std::string& text) {
  const absl::StatusOr<PriceSheet> sheet = ParsePriceSheet(text);
  EXPECT_FALSE(sheet.ok()) << text;
  return std::string(sheet.status().message());
}

TEST(PriceSheetTest, EveryMistakeIsNamed) {
  EXPECT_THAT(Mistake(""), HasSubstr("the sheet: has to be a map with instanceTypes"));
  EXPECT_THAT(Mistake("region: x"), HasSubstr("instanceTypes: is missing"));
  EXPECT_THAT(Mistake("instanceTypes: []"), HasSubstr("instanceTypes: has to be a map"));
  EXPECT_THAT(Mistake("instanceTypes: {a: 3}"), HasSubstr("instanceTypes.a: has to be a map"));
  EXPECT_THAT(Mistake("instanceTypes: {a: {spot: \"-1\"}}"),
              HasSubstr("instanceTypes.a.spot: has to be a decimal in dollars an hour"));
  EXPECT_THAT(Mistake("instanceTypes: {a: {reserved: 1}, b: {onDemand: []}}\nprice: 3"),
              ::testing::AllOf(HasSubstr("instanceTypes.a.reserved: is not known"),
                               HasSubstr("instanceTypes.b.onDemand: has to be a decimal"),
                               HasSubstr("price: is not known")));
  EXPECT_THAT(Mistake("currency: EUR\ninstanceTypes: {a: {spot: 1}}"), HasSubstr("only USD"));
  EXPECT_THAT(Mistake("instanceTypes: {a: {spot: 1}, a: {spot: 2}}"), HasSubstr("a"));
}

}  // namespace
}  // namespace hetero::api
