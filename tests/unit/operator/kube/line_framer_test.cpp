#include "operator/kube/line_framer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetero::kube {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(const std::vector<std::string>& pieces, size_t longest = 100,
                               size_t at_most = 100) {
  std::vector<std::string> lines;
  LineFramer framer(longest);
  const auto on_line = [&](std::string_view line) {
    lines.emplace_back(line);
    return lines.size() < at_most;
  };
  for (const std::string& piece : pieces) EXPECT_TRUE(framer.Feed(piece, on_line).ok());
  EXPECT_TRUE(framer.End(on_line).ok());
  return lines;
}

// Every way to cut a text into three pieces gives the same lines.
TEST(LineFramer, DoesNotCareHowBytesArrive) {
  const std::string text = "first\nsecond\r\n\n\r\nthird\nlast";
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      EXPECT_THAT(Lines({text.substr(0, i), text.substr(i, j - i), text.substr(j)}),
                  ElementsAre("first", "second", "third", "last"));
    }
  }
}

TEST(LineFramer, ReadsNothingAfterTheReaderHasHadEnough) {
  EXPECT_THAT(Lines({"a\nb\nc\n", "d\n"}, 100, 2), ElementsAre("a", "b"));
}

TEST(LineFramer, CapsALineHoweverItArrives) {
  const auto ignore = [](std::string_view) { return true; };
  for (const size_t piece : {1, 3, 100}) {
    LineFramer framer(10);
    const std::string line(12, 'x');
    absl::Status status;
    for (size_t at = 0; at < line.size() && status.ok(); at += piece) {
      status = framer.Feed(line.substr(at, piece), ignore);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_THAT(Lines({"0123456789\n"}, 10), ElementsAre("0123456789"));
}

TEST(LineFramer, TheLongestLineMayEndWithACarriageReturn) {
  EXPECT_THAT(Lines({"0123456789\r\n", "x\n"}, 10), ElementsAre("0123456789", "x"));
  EXPECT_THAT(Lines({"0123456789", "\r", "\n"}, 10), ElementsAre("0123456789"));
  EXPECT_THAT(Lines({"0123456789\r"}, 10), ElementsAre("0123456789"));
}

}  // namespace
}  // namespace hetero::kube
