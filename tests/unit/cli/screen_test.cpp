#include "cli/screen.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/virtual_screen.h"

namespace hetero::cli {
namespace {

using testing::VirtualScreen;

// As a terminal's driver does with line ends.
void Show(VirtualScreen& terminal, const std::string& bytes) {
  std::string cooked;
  for (const char c : bytes) cooked += c == '\n' ? std::string("\r\n") : std::string(1, c);
  terminal.Feed(cooked);
}

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TEST(ScreenTest, EachDrawingTakesThePlaceOfTheLast) {
  const Size size{20, 10};
  VirtualScreen terminal(size.columns, size.rows);
  terminal.Feed("$ kubectl hetero\r\n");
  Screen screen;
  for (const char* text : {"one\ntwo\nthree\n", "1\n", "long line here\nb\nc\nd\n", "x\ny\n"}) {
    Show(terminal, screen.Draw(text, size));
    EXPECT_EQ(terminal.Text(), std::string("$ kubectl hetero\n") + text);
  }
  EXPECT_EQ(terminal.unknown(), "");
  EXPECT_TRUE(terminal.cursor_visible());
  EXPECT_TRUE(terminal.wraps()) << "is left as it was";
}

TEST(ScreenTest, AtTheBottomOfAFullTerminalTheOldTextScrollsOnly) {
  const Size size{20, 5};
  VirtualScreen terminal(size.columns, size.rows);
  for (int i = 0; i < 8; ++i) terminal.Feed("shell\r\n");
  Screen screen;
  for (int i = 0; i < 3; ++i) Show(terminal, screen.Draw("a\nb\nc\n", size));
  EXPECT_EQ(terminal.Text(), "shell\na\nb\nc\n");
  EXPECT_EQ(terminal.History(),
            "shell\nshell\nshell\nshell\nshell\nshell\nshell\nshell\na\nb\nc\n");
}

TEST(ScreenTest, LinesLongerThanTheTerminalDoNotWrap) {
  const Size size{8, 10};
  VirtualScreen terminal(size.columns, size.rows);
  Screen screen;
  for (int i = 0; i < 2; ++i) Show(terminal, screen.Draw("12345678\n123456789\nend\n", size));
  EXPECT_EQ(terminal.Text(), "12345678\n12345...\nend\n");
  EXPECT_EQ(terminal.wrapped(), 0);
}

TEST(ScreenTest, MoreLinesThanTheTerminalHasAreCounted) {
  const Size size{80, 5};
  VirtualScreen terminal(size.columns, size.rows);
  Screen screen;
  for (int i = 0; i < 3; ++i) Show(terminal, screen.Draw(Lines(10), size));
  EXPECT_EQ(terminal.History(),
            "line 0\nline 1\nline 2\n+7 lines; a taller terminal or --once shows them\n");
  Show(terminal, screen.Finish(Lines(10), size));
  EXPECT_EQ(terminal.History(), Lines(10)) << "at last it stays, and may scroll";
}

TEST(ScreenTest, AnotherSizeBeginsANewScreen) {
  VirtualScreen terminal(30, 10);
  Screen screen;
  Show(terminal, screen.Draw("a line of thirty characters..\nb\n", {30, 10}));
  terminal.Resize(12, 6);
  Show(terminal, screen.Draw("a line\nb\n", {12, 6}));
  EXPECT_EQ(terminal.Text(), "a line\nb\n");
  terminal.Resize(40, 20);
  Show(terminal, screen.Draw("a line\nb\nc\n", {40, 20}));
  EXPECT_EQ(terminal.Text(), "a line\nb\nc\n");
}

TEST(ScreenTest, TheSmallestTerminals) {
  for (const Size size : {Size{1, 1}, Size{1, 2}, Size{2, 1}, Size{3, 3}}) {
    VirtualScreen terminal(size.columns, size.rows);
    Screen screen;
    for (int i = 0; i < 3; ++i) Show(terminal, screen.Draw(Lines(5), size));
    EXPECT_EQ(terminal.wrapped(), 0) << size.columns << "x" << size.rows;
    EXPECT_EQ(terminal.unknown(), "");
  }
}

}  // namespace
}  // namespace hetero::cli
