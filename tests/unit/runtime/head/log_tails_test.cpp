#include "runtime/head/log_tails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hetero::head {
namespace {

v1::Heartbeat Printed(int count, const std::string& text, int64_t unix_ns = 5) {
  v1::Heartbeat beat;
  for (int i = 0; i < count; ++i) {
    v1::LogLine& line = *beat.add_log_lines();
    line.set_text(text);
    line.set_unix_ns(unix_ns);
  }
  return beat;
}

TEST(LogTails, KeepTheNewestOfEachMemberAndOfAll) {
  LogTails tails;
  tails.Take("cpu-0", Printed(1, "first", 7));
  for (int i = 0; i < 300; ++i) tails.Take("cpu-1", Printed(1, std::to_string(i)));
  ASSERT_EQ(tails.Of("cpu-0").size(), 1);
  EXPECT_EQ(tails.Of("cpu-0")[0].text, "first");
  EXPECT_EQ(tails.Of("cpu-0")[0].unix_ns, 7);
  EXPECT_EQ(tails.Of("cpu-0")[0].number, 1);
  ASSERT_EQ(tails.Of("cpu-1").size(), LogTails::kLinesOfMember);
  EXPECT_EQ(tails.Of("cpu-1").front().text, "100");
  ASSERT_EQ(tails.newest().size(), LogTails::kNewest);
  EXPECT_EQ(tails.newest().back().text, "299");
  EXPECT_EQ(tails.newest().back().number, 301);
  EXPECT_TRUE(tails.Of("cpu-9").empty());
}

TEST(LogTails, OfOneMessageOnlyTheFirstAreTaken) {
  LogTails tails;
  tails.Take("cpu-0", Printed(10'000, "x"));
  EXPECT_EQ(tails.Of("cpu-0").size(), static_cast<size_t>(LogTails::kMostTold));
}

TEST(LogTails, ALongLineIsCut) {
  LogTails tails;
  tails.Take("cpu-0", Printed(1, std::string(100'000, 'x')));
  EXPECT_EQ(tails.Of("cpu-0")[0].text.size(), 512);
}

TEST(LogTails, AllTogetherAreBoundedAndWhoSaysMostLosesFirst) {
  LogTails tails;
  tails.Take("quiet", Printed(1, "one line"));
  const std::string text(512, 'x');
  for (int beat = 0; beat < 10; ++beat) {
    for (int member = 0; member < 500; ++member) {
      tails.Take("loud-" + std::to_string(member), Printed(20, text));
    }
  }
  size_t bytes = 0;
  for (int member = 0; member < 500; ++member) {
    for (const auto& line : tails.Of("loud-" + std::to_string(member))) bytes += line.text.size();
  }
  EXPECT_LE(bytes, LogTails::kMostBytes);
  EXPECT_GT(bytes, LogTails::kMostBytes / 2);
  EXPECT_EQ(tails.Of("quiet").size(), 1);
}

}  // namespace
}  // namespace hetero::head
