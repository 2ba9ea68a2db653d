#include <atomic>
#include <sstream>

#include "tests/integration/operator/cli_test_world.h"

// `kubectl hetero status` before a person and in a script, on the real control plane.
namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class StatusScreen : public CommandLine {
 protected:
  static std::vector<std::string> Command(const JobUnderTest& job) {
    return {"kubectl", "hetero", "status", job.name(), "-n", job.key().name_space};
  }
  static int Count(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  void LetPodsStart(const JobUnderTest& job, const std::string& role, int count) {
    for (int i = 0; i < count; ++i) {
      plane_.Patch(kube::kPods, job.PodKey(role, i),
                   {{"metadata", {{"annotations", {{"fake.hetero.dev/waiting", nullptr}}}}}});
    }
  }
};

TEST_F(StatusScreen, FromAMissingImageToTheResult) {
  TestNamespace space("screen");
  json manifest = MakeJob(
      "vit", {{"steps", 20}, {"holdAtStep", 10}, {"result", {{"accuracy", 0.885}, {"steps", 20}}}});
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/waiting", "ImagePullBackOff");
  AnnotatePods(manifest, "cpu", "fake.hetero.dev/message",
               "Back-off pulling image \"registry.example/hetero:missing\"");
  JobUnderTest job(space.name(), manifest);
  PtyProgram program(Command(job), 80, 40);
  ASSERT_TRUE(WaitShown(program, "vit-cpu-0, vit-cpu-1: ImagePullBackOff: Back-off pulling"));
  EXPECT_THAT(program.text(), HasSubstr("Waiting for:\n"));
  EXPECT_THAT(program.text(), HasSubstr("ImagePullFailed\n"));
  EXPECT_FALSE(program.echoes()) << "keys must not disturb the screen";
  program.Type("xyz\n\n");
  LetPodsStart(job, "cpu", 2);
  ASSERT_TRUE(WaitShown(program, "step 10 of 20"));
  EXPECT_THAT(program.text(), HasSubstr("vit  Running"));
  EXPECT_THAT(program.text(), Not(HasSubstr("ImagePull")));
  EXPECT_THAT(program.text(), Not(HasSubstr("xyz")));
  job.Continue();
  EXPECT_EQ(program.Wait(seconds(60)), 0) << program.text();
  const VirtualScreen screen = program.screen();
  EXPECT_THAT(screen.Text(), HasSubstr("accuracy  0.8850"));
  EXPECT_EQ(Count(screen.History(), space.name() + "/vit"), 1) << screen.History();
  EXPECT_TRUE(screen.coloured());
  ExpectTidy(program);
}

TEST_F(StatusScreen, AFailedJobEndsWithOne) {
  TestNamespace space("screen");
  JobUnderTest job(space.name(), MakeJob("diverged", {{"steps", 5},
                                                      {"verdict", "Failed"},
                                                      {"message", "loss is not finite"}}));
  PtyProgram program(Command(job), 80, 40, {"NO_COLOR=1"});
  EXPECT_EQ(program.Wait(seconds(60)), 1) << program.text();
  EXPECT_THAT(program.text(), HasSubstr("loss is not finite"));
  EXPECT_FALSE(program.screen().coloured()) << "NO_COLOR";
  ExpectTidy(program);
}

TEST_F(StatusScreen, CtrlCLeavesTheTerminalAsItWas) {
  TestNamespace space("screen");
  JobUnderTest job(space.name(), MakeJob("endless", {{"steps", 100000}, {"stepMillis", 50}}));
  PtyProgram program(Command(job), 80, 40);
  ASSERT_TRUE(WaitShown(program, job.name() + "  Running"));
  program.Type("\x03");
  EXPECT_EQ(program.Wait(seconds(20)), 130) << program.text();
  EXPECT_THAT(program.text(), EndsWith("endless; it goes on\n"));
  EXPECT_TRUE(job.Is("Running"));
  ExpectTidy(program);
}

TEST_F(StatusScreen, CtrlZLeavesTheShellItsLines) {
  TestNamespace space("screen");
  JobUnderTest job(space.name(), MakeJob("endless", {{"steps", 100000}, {"stepMillis", 50}}));
  PtyProgram shell({"bash", "--norc", "-i"}, 80, 60, {"PS1=$ "});
  shell.Type("kubectl hetero status endless -n " + space.name() + "\n");
  ASSERT_TRUE(WaitShown(shell, "endless  Running"));
  shell.Type("\x1a");
  ASSERT_TRUE(WaitShown(shell, "Stopped"));
  shell.Type("echo one-$((1 + 1))\n");
  ASSERT_TRUE(WaitShown(shell, "\none-2\n"));
  shell.Type("fg\n");
  WaitFor(
      "a second screen stands below the shell's lines",
      [&] { return Count(shell.text(), "endless  Running") == 2; }, seconds(20),
      [&] { return shell.text(); });
  shell.Type("\x03");
  ASSERT_TRUE(WaitShown(shell, "it goes on\n"));
  EXPECT_THAT(shell.text(), HasSubstr("\none-2\n"));
  shell.Type("exit $?\n");
  EXPECT_EQ(shell.Wait(seconds(60)), 130) << shell.text();
}

TEST_F(StatusScreen, CtrlCNeedsNoAnswerOfTheServer) {
  TestNamespace space("screen");
  std::atomic<bool> silent = false;
  std::atomic<bool> over = false;
  ApiProxy proxy(plane_.ProxyOptions());
  proxy.SetRule([&](const ProxiedRequest&) {
    while (silent && !over) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ProxyAction{};
  });
  JobUnderTest job(space.name(), MakeJob("endless", {{"steps", 100000}, {"stepMillis", 50}}));
  std::vector<std::string> command = Command(job);
  command.insert(command.end(), {"--kubeconfig", KubeconfigFor(space.name(), "view", proxy.url())});
  PtyProgram program(command, 80, 40);
  ASSERT_TRUE(WaitShown(program, job.name() + "  Running"));
  silent = true;
  std::this_thread::sleep_for(seconds(2));
  program.Type("\x03");
  EXPECT_EQ(program.Wait(seconds(20)), 130) << program.text();
  ExpectTidy(program);
  over = true;
}

TEST_F(StatusScreen, AServerThatComesBackIsWaitedFor) {
  TestNamespace space("screen");
  std::atomic<bool> down = false;
  ApiProxy proxy(plane_.ProxyOptions());
  proxy.SetRule([&](const ProxiedRequest&) {
    return ProxyAction{.kind = down ? ProxyAction::Kind::kLose : ProxyAction::Kind::kForward};
  });
  JobUnderTest job(space.name(), MakeJob("held", {{"steps", 20}, {"holdAtStep", 10}}));
  std::vector<std::string> command = Command(job);
  command.insert(command.end(), {"--kubeconfig", KubeconfigFor(space.name(), "view", proxy.url())});
  PtyProgram program(command, 80, 40);
  ASSERT_TRUE(WaitShown(program, "step 10 of 20"));
  down = true;
  ASSERT_TRUE(WaitShown(program, "Not up to date for"));
  EXPECT_THAT(program.text(), HasSubstr("step 10 of 20")) << "what was known stays";
  down = false;
  job.Continue();
  EXPECT_EQ(program.Wait(seconds(60)), 0) << program.text();
  EXPECT_THAT(program.text(), Not(HasSubstr("Not up to date")));
  ExpectTidy(program);
}

TEST_F(StatusScreen, NarrowAndShortAndResized) {
  TestNamespace space("screen");
  json manifest = MakeJob("crowd", {}, 9);
  RoleOf(manifest, "cpu")["template"]["spec"]["nodeSelector"] = {{"disk", "none-has-this"}};
  JobUnderTest job(space.name(), manifest);
  PtyProgram narrow(Command(job), 40, 50);
  PtyProgram low(Command(job), 60, 12);
  ASSERT_TRUE(WaitShown(narrow, "Unschedulable: 0/3"));
  ASSERT_TRUE(WaitShown(narrow, " more\n"));
  ASSERT_TRUE(WaitShown(low, " lines; a taller terminal or --once shows them"));
  std::this_thread::sleep_for(seconds(2));  // some redrawing
  EXPECT_EQ(Count(low.screen().History(), space.name() + "/crowd"), 1);
  EXPECT_EQ(Count(narrow.screen().History(), space.name() + "/crowd"), 1);
  for (const auto& [columns, rows] : {std::pair(60, 50), {120, 50}, {20, 50}, {100, 50}}) {
    narrow.Resize(columns, rows);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // sooner than the next look
    EXPECT_EQ(Count(narrow.text(), space.name() + "/cr"), 1) << narrow.text();
    EXPECT_EQ(narrow.screen().wrapped(), 0) << narrow.text();
  }
  EXPECT_THAT(narrow.text(), HasSubstr("ROLE  DESIRED  CREATED  RUNNING  REGISTERED  FAILED"));
  for (PtyProgram* program : {&narrow, &low}) {
    program->Type("\x03");
    EXPECT_EQ(program->Wait(seconds(20)), 130);
    ExpectTidy(*program);
  }
}

// What the head has found: in the object, as an event, on the screen, and still there at the end.
TEST_F(StatusScreen, SaysWhatToChange) {
  TestNamespace space("findings");
  const json finding = {{"rule", "InputBound"},
                        {"message", "rank 0 waits for data 40 % of its time"},
                        {"remedy", "set roles.cpu.replicas to 4"},
                        {"field", "roles.cpu.replicas"},
                        {"seconds", 750.5},
                        {"dollars", 0.75},
                        {"since", "2026-01-01T00:00:00Z"},
                        {"active", true}};
  const json other = {{"rule", "SlowWorker"}, {"member", "cpu-1"}, {"active", false}};
  JobUnderTest job(
      space.name(),
      MakeJob("vit", {{"steps", 20}, {"holdAtStep", 10}, {"findings", {finding, other}}}));
  WaitFor("the findings are written", [&] { return job.Status().contains("findings"); });
  EXPECT_EQ(job.Status()["findings"], json::array({finding, other}));
  const auto events = [&] {
    return plane_.Kubectl({"get", "events", "-n", space.name(), "-o", "json"}).output;
  };
  WaitFor("both are events", [&] { return Count(events(), "\"reason\": \"Finding\"") == 2; });
  EXPECT_THAT(events(), HasSubstr("InputBound: rank 0 waits for data 40 % of its time; set "
                                  "roles.cpu.replicas to 4\""));
  const CommandResult once = Hetero({"status", "vit", "-n", space.name(), "--once"});
  EXPECT_EQ(once.exit_code, 0);
  EXPECT_THAT(once.output, HasSubstr("\nWhat to change:\n"
                                     "  InputBound: rank 0 waits for data 40 % of its time (cost "
                                     "12m30s of training, $0.75)\n"
                                     "    -> set roles.cpu.replicas to 4\n"
                                     "  SlowWorker (cpu-1): "));
  EXPECT_THAT(Hetero({"list", "-n", space.name(), "-o", "wide"}).output,
              HasSubstr(" InputBound  "));
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_EQ(job.Status()["findings"], json::array({finding, other}));
  EXPECT_THAT(Hetero({"report", "vit", "-n", space.name()}).output,
              HasSubstr("What to change:\n  InputBound: "));
  EXPECT_EQ(Count(events(), "\"reason\": \"Finding\""), 2);
}

using StatusInScripts = StatusScreen;

TEST_F(StatusInScripts, ALinePerChange) {
  TestNamespace space("lines");
  JobUnderTest job(space.name(), MakeJob("quick", {{"steps", 20}}));
  const CommandResult result = Hetero({"status", "quick", "-n", space.name()});
  EXPECT_EQ(result.exit_code, 0);
  std::istringstream lines(result.output);
  std::string before, line;
  while (std::getline(lines, line)) {
    EXPECT_THAT(line, MatchesRegex("[0-9-]{10}T[0-9:]{8}Z [A-Z][A-Za-z]+( .*)?"));
    EXPECT_NE(line.substr(20), before) << "twice the same";
    before = line.substr(20);
  }
  EXPECT_THAT(before, HasSubstr("Succeeded step 20/"));
  EXPECT_THAT(result.output, Not(HasSubstr("\x1b")));
}

TEST_F(StatusInScripts, OnceAndJson) {
  TestNamespace space("once");
  JobUnderTest job(space.name(), MakeJob("held", {{"steps", 20}, {"holdAtStep", 10}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  const CommandResult once = Hetero({"status", "held", "-n", space.name(), "--once"});
  EXPECT_EQ(once.exit_code, 0);
  EXPECT_THAT(once.output, HasSubstr("/held  Running  "));
  EXPECT_THAT(once.output, Not(HasSubstr("\x1b")));
  const CommandResult object =
      Hetero({"status", "held", "-n", space.name(), "--once", "-o", "json"});
  EXPECT_EQ(json::parse(object.output, nullptr, false).value("attempt", 0), 1) << object.output;
  job.Continue();
  const CommandResult all = Hetero({"status", "held", "-n", space.name(), "--output", "json"});
  EXPECT_EQ(all.exit_code, 0);
  std::istringstream lines(all.output);
  json last;
  for (std::string line; std::getline(lines, line);) last = json::parse(line, nullptr, false);
  EXPECT_EQ(last, job.Status());
}

TEST_F(StatusInScripts, TimeoutPasses) {
  TestNamespace space("timeout");
  JobUnderTest job(space.name(), MakeJob("slow", {{"neverRegister", json::array({"cpu-0"})}}));
  const CommandResult result = Hetero({"status", "slow", "-n", space.name(), "--timeout", "2"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.output, EndsWith("/slow has not ended within 2 s; it goes on\n"));
}

TEST_F(StatusInScripts, AJobThatIsDeletedMeanwhile) {
  TestNamespace space("deleted");
  JobUnderTest job(space.name(), MakeJob("doomed", {{"steps", 100000}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  PtyProgram program(Command(job), 80, 40);
  ASSERT_TRUE(WaitShown(program, job.name() + "  Running"));
  job.Delete();
  EXPECT_EQ(program.Wait(seconds(30)), 1);
  EXPECT_THAT(program.text(), HasSubstr("/doomed was deleted while it was followed\n"));
  ExpectTidy(program);
}

TEST_F(StatusInScripts, AReaderThatGoesEndsIt) {
  TestNamespace space("pipe");
  JobUnderTest job(space.name(), MakeJob("endless", {{"steps", 100000}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  const CommandResult result = RunCommand(
      {"bash", "-c",
       "set -o pipefail; kubectl hetero status endless -n " + space.name() + " | head -1"},
      "", seconds(40));
  EXPECT_EQ(result.exit_code, 141) << result.output;
}

}  // namespace
}  // namespace hetero::testing
