#include "api/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using ::testing::StartsWith;

TEST(ByteSizeTest, CountsBytes) {
  EXPECT_EQ(Bytes("1Mi"), 1 << 20);
  EXPECT_EQ(Bytes("512Mi"), 512 << 20);
  EXPECT_EQ(Bytes("2Gi"), int64_t{2} << 30);
  EXPECT_EQ(Bytes("99999Mi"), int64_t{99'999} << 20);
  for (const char* text : {"", "Mi", "0Mi", "-1Mi", "1", "1M", "1Mi ", "1.5Gi", "100000Gi",
                           "99999999999999999999Gi"}) {
    EXPECT_EQ(Bytes(text), std::nullopt) << text;
  }
}

TEST(ByteSizeTest, WhatTheManifestTakesCanBeCounted) {
  for (const std::string good : {"1Mi", "99999Mi", "1Gi", "99Gi"}) {
    EXPECT_EQ(ErrorsOf({"training.inputWindow=" + good}), "") << good;
    EXPECT_TRUE(Bytes(good)) << good;
  }
  for (const std::string bad : {"0Mi", "01Mi", "100Gi", "0.5Gi", "512M", "1Ti", "512"}) {
    EXPECT_THAT(ErrorsOf({"training.inputWindow=" + bad}),
                StartsWith("spec.training.inputWindow: must be a quantity from 1Mi to 99Gi such as "
                           "512Mi or 2Gi, got '" +
                           bad + "'"))
        << bad;
  }
  EXPECT_THAT(ErrorsOf({"training.inputWindow=201326592"}),
              StartsWith("spec.training.inputWindow: has 9 characters; at most 7"));
}

}  // namespace
}  // namespace hetero::api
