#include "runtime/source/thrift_compact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace hetero::source {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Encoded = std::vector<uint8_t>;

std::map<int64_t, int64_t> NumbersOf(const Encoded& bytes) {
  std::map<int64_t, int64_t> numbers;
  WalkThriftStruct(bytes, [&](int64_t field, const ThriftValue& value) {
    numbers[field] = value.number;
    return true;
  });
  return numbers;
}

std::optional<size_t> LengthOf(const Encoded& bytes) {
  return WalkThriftStruct(bytes, [](int64_t, const ThriftValue&) { return true; });
}

TEST(ThriftCompactTest, NumbersOfAStruct) {
  // Field 1: int32 -1. Field 2: true. Field 3: false. Field 4: int8 -2. Field 300: int64 300.
  const Encoded bytes = {0x15, 0x01, 0x11, 0x12, 0x13, 0xfe, 0x06, 0xd8, 0x04, 0xd8, 0x04, 0x00, 9};
  EXPECT_THAT(NumbersOf(bytes),
              ElementsAre(Pair(1, -1), Pair(2, 1), Pair(3, 0), Pair(4, -2), Pair(300, 300)));
  EXPECT_EQ(LengthOf(bytes), 12);
  for (size_t length = 0; length < 12; ++length) {
    EXPECT_EQ(LengthOf({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)}),
              std::nullopt)
        << length;
  }
}

TEST(ThriftCompactTest, WhatIsNotLookedAtIsPassedOver) {
  const Encoded bytes = {
      0x18, 2,    'a',  'b',                   // 1: "ab"
      0x17, 0,    0,    0,   0,   0, 0, 0, 0,  // 2: double
      0x19, 0x21, 1,    2,                     // 3: list of true and false
      0x1b, 1,    0x85, 1,   'x', 2,           // 4: map of binary to int32
      0x1a, 0x15, 4,                           // 5: set of int32
      0x1c, 0x15, 6,    0,                     // 6: struct of int32
      0x1b, 0,                                 // 7: empty map
      0x15, 8,    0,                           // 8: 4
  };
  EXPECT_EQ(LengthOf(bytes), bytes.size());
  EXPECT_EQ(NumbersOf(bytes)[8], 4);
}

TEST(ThriftCompactTest, ElementsOfAList) {
  const Encoded bytes = {0x19, 0xf5, 16, 0,  2,  4,  6,  8,  10, 12,
                         14,   16,   18, 20, 22, 24, 26, 28, 30, 0};
  std::vector<int64_t> found;
  const auto read = [&](int64_t, const ThriftValue& list) {
    return WalkThriftList(list, [&](const ThriftValue& element) {
      found.push_back(element.number);
      return true;
    });
  };
  EXPECT_EQ(WalkThriftStruct(bytes, read), bytes.size());
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_FALSE(WalkThriftList({ThriftType::kInt32, 1, {}}, [](const auto&) { return true; }));
}

TEST(ThriftCompactTest, SizesBeyondTheBytesAreRefused) {
  EXPECT_EQ(LengthOf({0x18, 5, 'a', 0}), std::nullopt);
  EXPECT_EQ(LengthOf({0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}), std::nullopt);
  EXPECT_EQ(LengthOf({0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x55, 0, 0}), std::nullopt);
  EXPECT_EQ(LengthOf({0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}),
            std::nullopt);
  EXPECT_EQ(LengthOf({0x1d, 0, 0}), std::nullopt);  // no such type
  EXPECT_EQ(LengthOf({0x19, 0x10, 0, 0}), std::nullopt);
}

TEST(ThriftCompactTest, NestingHasAnEnd) {
  const auto nested = [](size_t depth) {
    Encoded bytes(depth, 0x1c);
    bytes.resize(2 * depth + 1, 0);
    return bytes;
  };
  EXPECT_EQ(LengthOf(nested(32)), 65);
  EXPECT_EQ(LengthOf(nested(33)), std::nullopt);
  EXPECT_EQ(LengthOf(nested(1'000'000)), std::nullopt);
}

}  // namespace
}  // namespace hetero::source
