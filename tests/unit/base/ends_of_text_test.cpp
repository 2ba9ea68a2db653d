#include "base/ends_of_text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace hetero::base {
namespace {

TEST(EndsOfText, WhatFitsStays) {
  EXPECT_EQ(EndsOfText("", 10), "");
  EXPECT_EQ(EndsOfText("one\ntwo", 7), "one\ntwo");
  EXPECT_EQ(EndsOfText("\xFF", 10), "\xEF\xBF\xBD");
}

TEST(EndsOfText, FirstLineAndLastWordsAreKept) {
  std::string text = "gpu-0: exit code 1\nTraceback (most recent call last):\n";
  for (int i = 0; i < 200; ++i) text += "  File \"train.py\", line " + std::to_string(i) + "\n";
  text += "ValueError: no";
  const std::string ends = EndsOfText(text, 300);
  EXPECT_LE(ends.size(), 300u);
  EXPECT_GT(ends.size(), 250u);
  EXPECT_TRUE(ends.starts_with("gpu-0: exit code 1\n[...]\n  File \"train.py\", line ")) << ends;
  EXPECT_TRUE(ends.ends_with(", line 199\nValueError: no")) << ends;
}

TEST(EndsOfText, OneLongLineLosesItsEnd) {
  EXPECT_EQ(EndsOfText(std::string(100, 'x'), 30), std::string(30, 'x'));
}

TEST(EndsOfText, ALongFirstLineLeavesRoomForTheLast) {
  const std::string ends = EndsOfText(std::string(100, 'x') + "\nthe last", 60);
  EXPECT_LE(ends.size(), 60u);
  EXPECT_TRUE(ends.starts_with("xxxx"));
  EXPECT_TRUE(ends.ends_with("\nthe last")) << ends;
}

// No limit cuts a character in two.
TEST(EndsOfText, EveryLimitGivesUtf8WithinIt) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\n";
  for (size_t most = 0; most < text.size() + 2; ++most) {
    const std::string ends = EndsOfText(text, most);
    EXPECT_LE(ends.size(), most);
    EXPECT_EQ(ToUtf8(ends), ends) << most;
    EXPECT_EQ(ends.find("\xEF\xBF\xBD"), std::string::npos) << most;
  }
}

}  // namespace
}  // namespace hetero::base
