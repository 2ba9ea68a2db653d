#include "runtime/agent/script_failure.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>

namespace hetero::agent {
namespace {

EndedScript Failed() {
  return {.rank = 1,
          .generation = 4,
          .exit = {.code = 1},
          .standing = {.connected = false, .said_hello = true, .begun = true, .steps_given = 12},
          .tail = "Traceback (most recent call last):\n  File \"t.py\"\nValueError: boom\n"};
}

TEST(ScriptFailureTest, EndsWithWhatTheScriptPrintedLast) {
  const v1::ScriptFailure failure = DescribeFailure(Failed());
  EXPECT_EQ(failure.generation(), 4);
  EXPECT_EQ(failure.rank(), 1);
  EXPECT_EQ(failure.step(), 12);
  EXPECT_EQ(failure.exit_code(), 1);
  EXPECT_FALSE(failure.fatal());
  EXPECT_EQ(failure.message(),
            "the script of rank 1 ended with exit code 1 in step 12\n"
            "Traceback (most recent call last):\n  File \"t.py\"\nValueError: boom");
}

TEST(ScriptFailureTest, ALongTailLosesItsBeginning) {
  EndedScript script = Failed();
  script.tail = std::string(5000, 'a') + "\xC3\xA9\xFF end";
  const v1::ScriptFailure failure = DescribeFailure(script);
  EXPECT_LE(failure.message().size(), 4096u);
  EXPECT_GT(failure.message().size(), 4080u);
  EXPECT_TRUE(failure.message().ends_with("a\xC3\xA9\xEF\xBF\xBD end")) << failure.message();
  EXPECT_TRUE(failure.message().starts_with("the script of rank 1")) << failure.message();
}

TEST(ScriptFailureTest, NamesTheSignalAndThatNothingWasPrinted) {
  EndedScript script = Failed();
  script.exit = {.signal = SIGSEGV};
  script.tail = " \n";
  script.standing.steps_given = 0;
  EXPECT_EQ(DescribeFailure(script).message(),
            "the script of rank 1 was killed by SIGSEGV; it printed nothing");
}

TEST(ScriptFailureTest, WhoNeverAskedForABatchHasNotTrained) {
  EndedScript script = Failed();
  script.exit = {};
  script.standing.begun = false;
  EXPECT_FALSE(HasTrained(script.standing));
  EXPECT_TRUE(DescribeFailure(script).fatal());
  EXPECT_NE(DescribeFailure(script).message().find("has asked for no batch"), std::string::npos);
  script.standing.said_hello = false;
  EXPECT_NE(DescribeFailure(script).message().find("hetero.Stream()"), std::string::npos);
}

TEST(ScriptFailureTest, MisuseWouldComeAgain) {
  EndedScript script = Failed();
  script.standing.misuse = absl::FailedPreconditionError("the state is of another dataset");
  const v1::ScriptFailure failure = DescribeFailure(script);
  EXPECT_TRUE(failure.fatal());
  EXPECT_NE(failure.message().find("in step 12: the state is of another dataset\nTraceback"),
            std::string::npos);
}

TEST(ScriptFailureTest, AStartIsFatalWhenTheJobIsWrongAndNotWhenTheMachineOrTheHeadIs) {
  for (const absl::Status& of_job :
       {absl::NotFoundError("no python"), absl::PermissionDeniedError("not executable"),
        absl::FailedPreconditionError("no such workingDirectory")}) {
    EXPECT_TRUE(DescribeStartFailure(0, 1, of_job).fatal()) << of_job;
  }
  for (const absl::Status& passing :
       {absl::UnavailableError("no process"), absl::ResourceExhaustedError("no free port"),
        absl::DeadlineExceededError("rank 0 has not told its address")}) {
    EXPECT_FALSE(DescribeStartFailure(0, 1, passing).fatal()) << passing;
  }
}

}  // namespace
}  // namespace hetero::agent
