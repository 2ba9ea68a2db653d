#include "runtime/process/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/recent_lines.h"

namespace hetero::process {
namespace {

TEST(LogLinesTest, SecretsAreMaskedTheLongerOneFirst) {
  EXPECT_EQ(WithoutSecretValues("key=abcdef123 token=abcdef", {"abcdef", "abcdef123"}),
            "key=*** token=***");
  EXPECT_EQ(WithoutSecretValues("abcdefabcdef", {"abcdef"}), "******");
}

TEST(LogLinesTest, ValuesTooShortForASecretBlackenNothing) {
  EXPECT_EQ(WithoutSecretValues("in a line", {"", "a", "line"}), "in a line");
}

TEST(LogLinesTest, AHeartbeatTellsEachLineOnceAndNoMoreThanFifty) {
  v1::Heartbeat before;
  AddLogLines(before);
  log::LinesOfThisProcess().Add("one");
  v1::Heartbeat first, second;
  AddLogLines(first);
  AddLogLines(second);
  ASSERT_EQ(first.log_lines_size(), 1);
  EXPECT_EQ(first.log_lines(0).text(), "one");
  EXPECT_GT(first.log_lines(0).unix_ns(), 0);
  EXPECT_EQ(second.log_lines_size(), 0);
  for (int i = 0; i < 180; ++i) log::LinesOfThisProcess().Add(std::string(400, 'x'));
  v1::Heartbeat many;
  AddLogLines(many);
  EXPECT_LE(many.log_lines_size(), 51);
  EXPECT_LE(many.ByteSizeLong(), 18'000);
}

}  // namespace
}  // namespace hetero::process
