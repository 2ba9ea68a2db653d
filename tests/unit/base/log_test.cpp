#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace hetero::log {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

std::string Captured(const std::function<void()>& write) {
  ::testing::internal::CaptureStderr();
  write();
  return ::testing::internal::GetCapturedStderr();
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("HETERO_LOG_LEVEL");
    Init("head");
  }
};

TEST_F(LogTest, LineHasTimeLevelComponentMessageAndFields) {
  EXPECT_THAT(Captured([] {
                Info("member joined", {{"role", "cpu"}, {"index", 0}});
              }),
              MatchesRegex("[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-9] "
                           "info  head  member joined role=cpu index=0\n"));
}

TEST_F(LogTest, ValuesKeepTheirTypesLooks) {
  const std::string text = "two words";
  EXPECT_THAT(
      Captured([&] {
        Warning("x", {{"b", true}, {"d", 0.25}, {"n", int64_t{-5}}, {"s", text}, {"e", ""}});
      }),
      HasSubstr("warn  head  x b=true d=0.25 n=-5 s=\"two words\" e=\"\"\n"));
}

TEST_F(LogTest, AnyValueStaysOnOneLine) {
  EXPECT_THAT(Captured([] {
                Error("x", {{"reason", "say \"a\\b\"\nnext\t\x01"}});
              }),
              HasSubstr("error head  x reason=\"say \\\"a\\\\b\\\"\\nnext\\t\\x01\"\n"));
}

TEST_F(LogTest, BracesInMessagesAreText) {
  EXPECT_THAT(Captured([] { Info("{} {0} %v"); }), HasSubstr("info  head  {} {0} %v\n"));
}

TEST_F(LogTest, PercentInTheComponentIsText) {
  Init("100% cpu");
  EXPECT_THAT(Captured([] { Info("x"); }), HasSubstr("info  100% cpu  x\n"));
}

TEST_F(LogTest, LevelHidesWhatIsBelow) {
  EXPECT_THAT(Captured([] { Debug("hidden"); }), IsEmpty());
  Init("head", Level::kDebug);
  EXPECT_THAT(Captured([] { Debug("shown"); }), HasSubstr("debug head  shown\n"));
  Init("head", Level::kOff);
  EXPECT_THAT(Captured([] { Error("hidden"); }), IsEmpty());
}

TEST_F(LogTest, EnvironmentOverridesTheLevel) {
  setenv("HETERO_LOG_LEVEL", "error", 1);
  Init("head", Level::kDebug);
  EXPECT_THAT(Captured([] { Warning("hidden"); }), IsEmpty());
  setenv("HETERO_LOG_LEVEL", "loud", 1);
  EXPECT_THAT(Captured([] { Init("head"); }), HasSubstr("HETERO_LOG_LEVEL is ignored"));
  unsetenv("HETERO_LOG_LEVEL");
}

TEST_F(LogTest, NoColoursOutsideATerminal) {
  EXPECT_THAT(Captured([] { Error("x"); }), ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace hetero::log
