#include "runtime/source/shard_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::source {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ExpandRangesTest, CountsLikeAnOdometer) {
  const auto files = ExpandRanges("s3://bucket/set/train-{098..101}.tar");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->folder, "s3://bucket/set");
  EXPECT_THAT(files->names,
              ElementsAre("train-098.tar", "train-099.tar", "train-100.tar", "train-101.tar"));
  EXPECT_THAT(ExpandRanges("file:///d/{0..1}-{9..10}.tar")->names,
              ElementsAre("0-9.tar", "0-10.tar", "1-9.tar", "1-10.tar"));
  EXPECT_THAT(ExpandRanges("file:///d/a-{7..7}")->names, ElementsAre("a-7"));
}

TEST(ExpandRangesTest, AFolderStaysOne) {
  const auto files = ExpandRanges("file:///data/set");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->folder, "file:///data/set");
  EXPECT_THAT(files->names, IsEmpty());
}

TEST(ExpandRangesTest, WhatIsNoRangeIsNamed) {
  for (const char* range : {"{1..0}", "{a..b}", "{01..100}", "{1}", "{}", "{1..}", "{-1..2}",
                            "{1..99999999999999999999}"}) {
    const std::string uri = std::string("file:///data/x-") + range + ".tar";
    EXPECT_THAT(std::string(ExpandRanges(uri).status().message()), HasSubstr(range)) << range;
  }
  const auto error = [](const char* uri) {
    return std::string(ExpandRanges(uri).status().message());
  };
  EXPECT_THAT(error("file:///data/{0..1}/a.tar"), HasSubstr("last part"));
  EXPECT_THAT(error("file:///data/a-{0..1"), HasSubstr("without \"}\""));
  EXPECT_THAT(error("file:///d/{0..999999}-{0..1}"), HasSubstr("more than 1000000 files"));
  EXPECT_THAT(error("file:///d/{0..999999999999999999}"), HasSubstr("more than 1000000 files"));
}

}  // namespace
}  // namespace hetero::source
