#include "cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::cli {
namespace {

using ::testing::ElementsAre;

TEST(TextTest, EscapeSequencesOfPodsNeverReachTheTerminal) {
  EXPECT_EQ(Plain("a\x1b[2Jb\tc\nd\x7f\n"), "a [2Jb c d ");
  EXPECT_EQ(Plain("für"), "für");
}

TEST(TextTest, ColumnsAreCharactersWithoutColours) {
  EXPECT_EQ(Columns(""), 0u);
  EXPECT_EQ(Columns("für"), 3u);
  EXPECT_EQ(Columns("\x1b[1;32mok\x1b[0m"), 2u);
  EXPECT_EQ(Columns("\x1b[1;32"), 0u) << "unfinished";
}

TEST(TextTest, CutNeverSplitsACharacterNorLeavesAColourOn) {
  EXPECT_EQ(Cut("abcdef", 0), "abcdef");
  EXPECT_EQ(Cut("abcdef", 6), "abcdef");
  EXPECT_EQ(Cut("abcdef", 5), "ab...");
  EXPECT_EQ(Cut("ääääää", 5), "ää...");
  EXPECT_EQ(Cut("abcdef", 2), "..");
  EXPECT_EQ(Cut("\x1b[1;32mabcdef\x1b[0m", 5), "\x1b[1;32mab\x1b[0m...");
}

TEST(TextTest, WrapBreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_THAT(Wrap("", 10, 2), ElementsAre(""));
  EXPECT_THAT(Wrap("one two three", 0, 2), ElementsAre("one two three"));
  EXPECT_THAT(Wrap("one two three four", 9, 2), ElementsAre("one two", "  three", "  four"));
  EXPECT_THAT(Wrap("/a/path/without/any/space", 10, 2),
              ElementsAre("/a/path/wi", "  thout/an", "  y/space"));
  EXPECT_THAT(Wrap("one two three four", 9, 2, 2), ElementsAre("one two", "  thre..."));
  EXPECT_THAT(Wrap("abc", 1, 4), ElementsAre("a", "b", "c"));
}

TEST(TextTest, FlowBreaksBetweenPieces) {
  EXPECT_EQ(Flow({"one", "two", "three"}, 0), "one  two  three\n");
  EXPECT_EQ(Flow({"one", "two", "three"}, 8, 2), "one  two\n  three\n");
  EXPECT_EQ(Flow({"one", "a very long piece"}, 8, 2), "one\n  a v...\n");
}

TEST(TextTest, TablesLoseColumnsBeforeTheyAreCut) {
  const std::vector<Row> rows = {{"NAME", "A", "B"}, {"x", "11", "2"}, {"für", "1", ""}};
  EXPECT_EQ(Table(rows), "NAME  A   B\nx     11  2\nfür   1\n");
  EXPECT_EQ(Table(rows, 8, {"B", "A"}), "NAME  A\nx     11\nfür   1\n");
  EXPECT_EQ(Table(rows, 7, {"B", "C"}), "NAME  A\nx   ...\nfür   1\n");
  EXPECT_EQ(Table(rows, 4, {"B", "A"}), "NAME\nx\nfür\n");
  EXPECT_EQ(Table({}, 4), "");
}

}  // namespace
}  // namespace hetero::cli
