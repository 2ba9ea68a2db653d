#include "runtime/compare/shown_text.h"

#include <gtest/gtest.h>

namespace hetero::compare {
namespace {

TEST(ShownText, StaysOnOneLineAndMovesNoTerminal) {
  EXPECT_EQ(ShownText("plain", 10), "plain");
  EXPECT_EQ(ShownText("a\nb\x1b[31mc\x7f", 20), "a b [31mc ");
  EXPECT_EQ(ShownText("a\xc2\x9b"
                      "1m",
                      20),
            "a 1m");
  EXPECT_EQ(ShownText("bad \xff", 20), "bad \xef\xbf\xbd");
}

TEST(ShownText, CutsBetweenCharacters) {
  EXPECT_EQ(ShownText("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(ShownText("abcdefghijk", 10), "abcdefg...");
  EXPECT_EQ(ShownText("ääääää", 6), "ääääää");
  EXPECT_EQ(ShownText("äääääää", 6), "äää...");
  EXPECT_EQ(ShownText(std::string(1'000'000, 'x'), 3), "...");
}

TEST(Padded, CountsCharacters) {
  EXPECT_EQ(PaddedRight("µs", 4), "µs  ");
  EXPECT_EQ(PaddedLeft("µs", 4), "  µs");
  EXPECT_EQ(PaddedLeft("longer", 4), "longer");
}

}  // namespace
}  // namespace hetero::compare
