#include "base/utf8.h"

#include <gtest/gtest.h>

namespace hetero::base {
namespace {

TEST(Utf8, GoodTextStaysAsItIs) {
  const std::string text = "train/\xC3\xA4.jpg \xE2\x82\xAC \xF0\x9F\x98\x80 \xEF\xBF\xBF";
  EXPECT_EQ(ToUtf8(text), text);
  EXPECT_EQ(ToUtf8(""), "");
}

TEST(Utf8, WhatIsNoneIsReplaced) {
  const std::string bad[] = {
      "\xE4",          // Latin-1
      "\x80",          // a continuation of nothing
      "\xC0", "\xC1",  // would say in two bytes what one can
      "\xF5", "\xFF",  // begin nothing
  };
  for (const std::string& bytes : bad)
    EXPECT_EQ(ToUtf8("a" + bytes + "b"),
              "a\xEF\xBF\xBD"
              "b");
  // Each byte on its own: too long, half of a UTF-16 pair, above U+10FFFF, cut short.
  const std::string three = "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
  EXPECT_EQ(ToUtf8("\xE0\x80\x80"), three);
  EXPECT_EQ(ToUtf8("\xED\xA0\x80"), three);
  EXPECT_EQ(ToUtf8("\xF4\x90\x80\x80"), three + "\xEF\xBF\xBD");
  EXPECT_EQ(ToUtf8("\xF0\x9F\x98"), three);
}

TEST(Utf8, NoCharacterIsCut) {
  EXPECT_EQ(ToUtf8("abcd", 3), "abc");
  EXPECT_EQ(ToUtf8("ab\xE2\x82\xAC", 4), "ab");
  EXPECT_EQ(ToUtf8("ab\xE2\x82\xAC", 5), "ab\xE2\x82\xAC");
  EXPECT_EQ(ToUtf8("ab\xFF", 4), "ab");
}

}  // namespace
}  // namespace hetero::base
