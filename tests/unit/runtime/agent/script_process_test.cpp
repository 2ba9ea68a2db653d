// Real processes: shells that start others, ignore signals, leave children behind.
#include "runtime/agent/script_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "base/non_dumpable.h"
#include "runtime/agent/process_tree.h"
#include "tests/support/temporary_folder.h"

namespace hetero::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

bool Runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(file, line) && line.find(") Z ") == std::string::npos;
}

template <typename Condition>
bool Await(Condition condition, seconds patience = seconds(10)) {
  const auto end = Steady::now() + patience;
  while (!condition()) {
    if (Steady::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

class ScriptProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto forked = ScriptProcess::ForkKeepers(1);
    ASSERT_TRUE(forked.ok()) << forked.status();
    script_ = std::move((*forked)[0]);
  }

  absl::StatusOr<pid_t> Start(const std::string& shell) {
    return script_->Start({.arguments = {"sh", "-c", shell},
                           .environment = {"PATH=/bin:/usr/bin", "FOLDER=" + folder_.path()}});
  }
  ScriptExit Exit() {
    std::optional<ScriptExit> exit;
    EXPECT_TRUE(Await([&] {
      const auto polled = script_->AwaitExit({});
      if (polled.ok()) exit = *polled;
      return exit.has_value();
    }));
    return exit.value_or(ScriptExit{.code = -1});
  }
  // A number that a script wrote into a file of the folder.
  pid_t NumberIn(const std::string& name) {
    pid_t number = -1;
    EXPECT_TRUE(Await([&] {
      std::ifstream file(folder_ / name);
      return static_cast<bool>(file >> number) && file.get() == '\n';
    })) << name;
    return number;
  }
  std::string Output() {
    std::string all;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = read(script_->output(), buffer, sizeof buffer)) > 0) all.append(buffer, count);
    return all;
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<ScriptProcess> script_;
};

TEST_F(ScriptProcessTest, RunsOneScriptAfterTheOther) {
  ASSERT_TRUE(Start("echo out; echo err >&2; exit 3").ok());
  EXPECT_EQ(Exit().code, 3);
  EXPECT_TRUE(script_->End(seconds(1)).ok());
  EXPECT_EQ(Output(), "out\nerr\n");
  ASSERT_TRUE(Start("kill -9 $$").ok());
  EXPECT_EQ(Exit().signal, SIGKILL);
  EXPECT_TRUE(script_->End(seconds(1)).ok());
  ASSERT_TRUE(Start("exit 0").ok());
  EXPECT_TRUE(Exit().ok());
}

TEST_F(ScriptProcessTest, GetsItsEnvironmentFolderAndNothingToRead) {
  ASSERT_TRUE(script_
                  ->Start({.arguments = {"sh", "-c", "echo $A; pwd; cat; echo ${HOME-none}"},
                           .environment = {"PATH=/bin:/usr/bin", "A=b = c"},
                           .working_directory = "/"})
                  .ok());
  EXPECT_TRUE(Exit().ok());
  EXPECT_EQ(Output(), "b = c\n/\nnone\n");
}

// Debuggers may watch it, whatever its agent holds.
TEST(ScriptProcess, OfANonDumpableAgentIsDumpable) {
  base::MakeNonDumpable();
  const auto forked = ScriptProcess::ForkKeepers(1);
  prctl(PR_SET_DUMPABLE, 1);  // for the tests behind this one
  ASSERT_TRUE(forked.ok()) << forked.status();
  ScriptProcess& script = *(*forked)[0];
  constexpr char kAsk[] = "import ctypes; raise SystemExit(ctypes.CDLL(None).prctl(3))";
  ASSERT_TRUE(script
                  .Start({.arguments = {"python3", "-c", kAsk},
                          .environment = {"PATH=/bin:/usr/bin:/usr/local/bin"}})
                  .ok());
  std::optional<ScriptExit> exit;
  ASSERT_TRUE(Await([&] {
    const auto polled = script.AwaitExit({});
    if (polled.ok()) exit = *polled;
    return exit.has_value();
  }));
  EXPECT_EQ(exit->code, 1);
}

TEST_F(ScriptProcessTest, SaysWhatCannotBeStarted) {
  const auto start = [&](const std::string& program, const std::string& folder = "") {
    return script_
        ->Start({.arguments = {program}, .environment = {"PATH=/bin"}, .working_directory = folder})
        .status();
  };
  EXPECT_TRUE(absl::IsNotFound(start("no-such-program"))) << start("no-such-program");
  EXPECT_TRUE(absl::IsPermissionDenied(start("/etc/passwd"))) << start("/etc/passwd");
  const absl::Status no_folder = start("sh", "/no/such/folder");
  EXPECT_TRUE(absl::IsFailedPrecondition(no_folder));
  EXPECT_NE(no_folder.message().find("workingDirectory /no/such/folder"), std::string::npos);
  // And the next one runs.
  ASSERT_TRUE(Start("exit 0").ok());
  EXPECT_TRUE(Exit().ok());
}

TEST_F(ScriptProcessTest, EndsAScriptThatHearsSigterm) {
  const auto pid =
      Start("trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(pid.ok());
  std::string output;
  ASSERT_TRUE(Await([&] { return (output += Output()) == "ready\n"; }));
  EXPECT_TRUE(script_->End(seconds(10)).ok());
  EXPECT_EQ(Exit().code, 7);
  EXPECT_EQ(Output(), "saved\n");
  EXPECT_FALSE(Runs(*pid));
}

TEST_F(ScriptProcessTest, KillsAScriptThatIgnoresSigterm) {
  const auto pid = Start("trap '' TERM; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(pid.ok());
  ASSERT_TRUE(Await([&] { return !Output().empty(); }));
  const auto began = Steady::now();
  EXPECT_TRUE(script_->End(milliseconds(300)).ok());
  EXPECT_GE(Steady::now() - began, milliseconds(300));
  EXPECT_EQ(Exit().signal, SIGKILL);
  EXPECT_FALSE(Runs(*pid));
}

TEST_F(ScriptProcessTest, EndsAScriptThatIsStopped) {
  const auto pid = Start("kill -STOP $$; exit 1");
  ASSERT_TRUE(pid.ok());
  EXPECT_TRUE(script_->End(milliseconds(200)).ok());
  EXPECT_FALSE(Runs(*pid));
}

// In a session of its own, without its parent: nothing but the tree of processes has it.
constexpr char kLeavesBehind[] =
    "setsid sh -c 'trap \"\" TERM; echo $$ > $FOLDER/left; while :; do sleep 0.05; done' & "
    "while [ ! -s $FOLDER/left ]; do sleep 0.01; done; exit 0";

TEST_F(ScriptProcessTest, EndsWhatAScriptHasLeftBehind) {
  ASSERT_TRUE(Start(kLeavesBehind).ok());
  EXPECT_TRUE(Exit().ok());
  const pid_t left = NumberIn("left");
  EXPECT_TRUE(Runs(left));
  EXPECT_TRUE(script_->End(milliseconds(100)).ok());
  EXPECT_FALSE(Runs(left));
}

TEST_F(ScriptProcessTest, WhatIsLeftBehindMaySaveFirst) {
  ASSERT_TRUE(Start("setsid sh -c 'trap \"echo 1 > $FOLDER/saved; exit\" TERM; echo $$ > "
                    "$FOLDER/left; while :; do sleep 0.05; done' & while [ ! -s $FOLDER/left ]; do "
                    "sleep 0.01; done; exit 0")
                  .ok());
  EXPECT_TRUE(Exit().ok());
  EXPECT_TRUE(script_->End(seconds(5)).ok());
  EXPECT_EQ(NumberIn("saved"), 1);
}

TEST_F(ScriptProcessTest, NothingOutlivesTheObject) {
  const auto pid = Start("trap '' TERM; " + std::string(kLeavesBehind) + "; sleep 100");
  ASSERT_TRUE(pid.ok());
  const pid_t left = NumberIn("left");
  script_.reset();
  EXPECT_FALSE(Runs(*pid));
  EXPECT_FALSE(Runs(left));
}

// A fork of this program takes the agent's part and is killed.
TEST_F(ScriptProcessTest, NothingOutlivesAnAgentThatIsKilled) {
  const pid_t agent = fork();
  if (agent == 0) {
    auto forked = ScriptProcess::ForkKeepers(2);
    for (auto& script : *forked) {
      const std::string name = script == forked->front() ? "a" : "b";
      if (!script
               ->Start({.arguments = {"sh", "-c",
                                      "setsid sh -c 'echo $$ > $FOLDER/" + name +
                                          "2; exec sleep 100' & echo $$ > $FOLDER/" + name +
                                          "1; exec sleep 100"},
                        .environment = {"PATH=/bin:/usr/bin", "FOLDER=" + folder_.path()}})
               .ok()) {
        _exit(1);
      }
    }
    pause();
  }
  std::vector<pid_t> scripts;
  for (const char* name : {"a1", "a2", "b1", "b2"}) scripts.push_back(NumberIn(name));
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  for (const pid_t pid : scripts) EXPECT_TRUE(Await([pid] { return !Runs(pid); })) << pid;
}

TEST_F(ScriptProcessTest, AKilledKeeperTakesItsScriptWithIt) {
  const auto pid = Start("echo $PPID > $FOLDER/keeper; exec sleep 100");
  ASSERT_TRUE(pid.ok());
  kill(NumberIn("keeper"), SIGKILL);
  EXPECT_TRUE(Await([&] { return absl::IsUnavailable(script_->AwaitExit({}).status()); }));
  EXPECT_TRUE(Await([&] { return !Runs(*pid); }));
  EXPECT_TRUE(absl::IsUnavailable(script_->End(seconds(1))));
}

// Its answer would be taken for that to the next request.
TEST_F(ScriptProcessTest, AKeeperThatHasNotAnsweredIsNotAskedAgain) {
  ASSERT_TRUE(Start("echo $PPID > $FOLDER/keeper").ok());
  EXPECT_TRUE(Exit().ok());
  ASSERT_TRUE(script_->End(seconds(1)).ok());
  const pid_t keeper = NumberIn("keeper");
  kill(keeper, SIGSTOP);
  const ScriptCommand command{.arguments = {"sleep", "100"}, .environment = {"PATH=/bin"}};
  EXPECT_TRUE(absl::IsDeadlineExceeded(script_->Start(command, milliseconds(20)).status()));
  EXPECT_TRUE(script_->keeper_lost());
  kill(keeper, SIGCONT);
  EXPECT_TRUE(absl::IsUnavailable(script_->End(seconds(1))));
  EXPECT_TRUE(absl::IsUnavailable(script_->Start(command).status()));
}

TEST_F(ScriptProcessTest, ManyGenerationsOfProcessesEnd) {
  ASSERT_TRUE(Start("for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4 5 6 7 8; do sleep 100 & done; "
                    "sleep 100) & done; echo ready; sleep 100")
                  .ok());
  ASSERT_TRUE(Await([&] { return !Output().empty(); }));
  EXPECT_TRUE(script_->End(seconds(10)).ok());
  EXPECT_EQ(Descendants(getpid()).size(), 1u) << "the keeper alone";
}

TEST_F(ScriptProcessTest, TheTimeOfAllThatAScriptStartsIsCountedWhileItRunsAndWhenItHasEnded) {
  const double before = script_->cpu_seconds();
  // One part by a process that is waited for, one by a process that is left behind.
  ASSERT_TRUE(Start("burn() { i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; }\n"
                    "(burn); (burn; echo ready; sleep 100) & sleep 100")
                  .ok());
  ASSERT_TRUE(Await([&] { return !Output().empty(); }));
  const double running = script_->cpu_seconds() - before;
  EXPECT_GE(running, 0.04);  // of 100 ms and more each; a tick of the clock is 10 ms
  EXPECT_TRUE(script_->End(seconds(10)).ok());
  EXPECT_GE(script_->cpu_seconds() - before, running);
}

}  // namespace
}  // namespace hetero::agent
