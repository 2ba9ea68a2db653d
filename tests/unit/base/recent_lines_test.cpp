#include "base/recent_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"

namespace hetero::log {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<RecentLine>& lines) {
  std::vector<std::string> texts;
  for (const RecentLine& line : lines) texts.push_back(line.text);
  return texts;
}

std::vector<std::string> Taken(RecentLines& lines) { return Texts(lines.Take(1000, 1 << 20)); }

TEST(RecentLinesTest, AreTakenOnceInTheirOrder) {
  RecentLines lines;
  lines.Add("one");
  lines.Add("two");
  EXPECT_THAT(Taken(lines), ElementsAre("one", "two"));
  EXPECT_THAT(Taken(lines), IsEmpty());
}

TEST(RecentLinesTest, TheNewestAreKeptAndTheOthersCounted) {
  RecentLines lines;
  for (int i = 0; i < 205; ++i) lines.Add(std::to_string(i));
  EXPECT_THAT(Texts(lines.Take(3, 1000)),
              ElementsAre("(202 lines are left out here)", "202", "203", "204"));
  for (const char* text : {"aaaa", "bbbb", "cccc"}) lines.Add(text);
  EXPECT_THAT(Texts(lines.Take(100, 9)),
              ElementsAre("(1 lines are left out here)", "bbbb", "cccc"));
}

TEST(RecentLinesTest, WhatIsForTerminalsIsLeftOut) {
  RecentLines lines;
  lines.Add("\x1b[31mred\x1b[0m and\tplain\x07\r");
  lines.Add("10 %\r 20 %\r100 %");
  lines.Add(
      "a\xff"
      "b");
  lines.Add("\x1b[");
  lines.Add("");
  EXPECT_THAT(Taken(lines), ElementsAre("red and plain", "100 %",
                                        "a\xef\xbf\xbd"
                                        "b"));
}

TEST(RecentLinesTest, ALongLineIsCutBetweenCharacters) {
  RecentLines lines;
  std::string text(RecentLines::kLongest - 1, 'x');
  lines.Add(text + "\xc3\xa4 and more");
  EXPECT_THAT(Taken(lines), ElementsAre(text));
}

TEST(RecentLinesTest, WhatIsLoggedIsAmongThoseOfTheProcess) {
  LinesOfThisProcess().Take(1000, 1 << 20);
  Warning("the disk is slow", {{"seconds", 3}});
  EXPECT_THAT(Taken(LinesOfThisProcess()), Contains(HasSubstr("the disk is slow seconds=3")));
}

TEST(LineCutterTest, CutsPiecesIntoLines) {
  RecentLines lines;
  LineCutter cutter("[rank 1] ", lines);
  for (const char* piece : {"a", "b\nc", "d\n\nrest"}) cutter.Add(piece);
  EXPECT_THAT(Taken(lines), ElementsAre("[rank 1] ab", "[rank 1] cd"));
  cutter.Add("\n");
  EXPECT_THAT(Taken(lines), ElementsAre("[rank 1] rest"));
}

TEST(LineCutterTest, AProgressBarIsTheLastOfItsStates) {
  RecentLines lines;
  LineCutter cutter("[rank 1] ", lines);
  for (int i = 0; i < 100'000; ++i) cutter.Add("\r" + std::to_string(i) + " steps");
  cutter.Add("\n");
  EXPECT_THAT(Taken(lines), ElementsAre("[rank 1] 99999 steps"));
}

TEST(LineCutterTest, ALineWithoutEndCostsLittle) {
  RecentLines lines;
  LineCutter cutter("", lines);
  for (int i = 0; i < 1000; ++i) cutter.Add(std::string(65536, 'x'));
  cutter.Add("\n");
  EXPECT_THAT(Taken(lines), ElementsAre(std::string(RecentLines::kLongest, 'x')));
}

}  // namespace
}  // namespace hetero::log
