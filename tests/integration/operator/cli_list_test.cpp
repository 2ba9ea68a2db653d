#include <signal.h>

#include <atomic>
#include <sstream>

#include "tests/integration/operator/cli_test_world.h"

// `kubectl hetero list` and `top`, before a person and in a script.
namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Lists = CommandLine;

TEST_F(Lists, EveryJobStandsOnALine) {
  TestNamespace space("list");
  json stuck = MakeJob("stuck", {}, 2);
  RoleOf(stuck, "cpu")["template"]["spec"]["nodeSelector"] = {{"disk", "none-has-this"}};
  JobUnderTest held(space.name(), MakeJob("held", {{"steps", 20}, {"holdAtStep", 10}}));
  JobUnderTest waits(space.name(), stuck);
  JobUnderTest done(space.name(), MakeJob("done", {{"steps", 3}}));
  ASSERT_TRUE(held.WaitIs("Running"));
  ASSERT_TRUE(done.WaitIs("Succeeded"));
  WaitFor("the step is written", [&] { return held.Status()["progress"]["step"] == 10; });
  WaitFor("the pod is missed", [&] { return waits.Reason("Registered") == "Unschedulable"; });
  const std::string user = KubeconfigFor(space.name(), "view");
  const CommandResult list = Hetero({"list", "--kubeconfig", user});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.output,
              AllOf(StartsWith("NAME   STATE"),
                    ContainsRegex("\ndone   Succeeded +0 +[0-2]/2 +[0-9ms]+ +3/3 +100% +- +- +-\n"),
                    ContainsRegex("\nheld   Running +0 +2/2 +[0-9ms]+ +10/20 +50% +[0-9.]+ "),
                    ContainsRegex("\nstuck  PodsCreated +0 +0/2 .*Unschedulable: .*0/3 nodes")));
  EXPECT_LT(list.output.find("\ndone "), list.output.find("\nheld "));

  const CommandResult object = Hetero({"list", "-o", "json", "--kubeconfig", user});
  const json items = json::parse(object.output, nullptr, false)["items"];
  ASSERT_EQ(items.size(), 3u) << object.output;
  EXPECT_EQ(items[1], held.Get());
  EXPECT_EQ(Hetero({"ls", "-o", "name", "-n", space.name()}).output,
            "heterotrainingjob.training.hetero.dev/done\n"
            "heterotrainingjob.training.hetero.dev/held\n"
            "heterotrainingjob.training.hetero.dev/stuck\n");
  EXPECT_THAT(Hetero({"list", "-A", "-o", "wide"}).output,
              AllOf(StartsWith("NAMESPACE "), ContainsRegex("\n" + space.name() + " +held ")));
}

TEST_F(Lists, WhatIsWrongIsSaid) {
  TestNamespace space("lists");
  JobUnderTest job(space.name(), MakeJob("vit-blur", {{"steps", 3}}));
  const std::string user = KubeconfigFor(space.name(), "view");
  const auto says = [&](std::vector<std::string> arguments, const std::string& what) {
    const CommandResult result = Hetero(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_THAT(result.output,
                AllOf(StartsWith("error: "), HasSubstr(what), Not(HasSubstr("/apis/"))));
  };
  says({"list", "-A", "--kubeconfig", user},
       "ask for the right to list heterotrainingjobs in all namespaces");
  says({"list", "-w", "-n", space.name(), "--as", "jane"},
       "User \"jane\" cannot list resource \"heterotrainingjobs\"");
  says({"list", "-l", "a==b==c", "-n", space.name()}, "in namespace " + space.name() + ": ");
  says({"top", "vit-blurr", "-n", space.name()}, "Did you mean vit-blur?");
  says({"status", "vit_blur", "--kubeconfig", user}, "Did you mean vit-blur?");
  const CommandResult none = Hetero({"list", "-n", space.name(), "-l", "team=vision"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.output,
            "No heterotrainingjobs with these labels in namespace " + space.name() + "\n");
}

TEST_F(Lists, ChangesAreWatched) {
  TestNamespace space("watch");
  JobUnderTest job(space.name(), MakeJob("held", {{"steps", 20}, {"holdAtStep", 10}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  BackgroundProgram lines({"kubectl", "hetero", "list", "-w", "-n", space.name()},
                          plane_.folder() + "/list.log");
  PtyProgram screen({"kubectl", "hetero", "list", "-w", "-n", space.name()}, 80, 24);
  const auto prints = [&](const std::string& what) {
    return WaitFor(
        "a line has " + what, [&] { return lines.log().find(what) != std::string::npos; },
        seconds(60), [&] { return lines.log(); });
  };
  ASSERT_TRUE(prints("held  Running"));
  ASSERT_TRUE(WaitShown(screen, "held  Running"));
  EXPECT_FALSE(screen.echoes()) << "keys must not disturb the screen";
  job.Continue();
  ASSERT_TRUE(prints("held  Succeeded"));
  ASSERT_TRUE(WaitShown(screen, "held  Succeeded"));
  EXPECT_THAT(screen.text(), Not(HasSubstr("Running")));
  job.Delete();
  ASSERT_TRUE(prints("  deleted\n"));
  ASSERT_TRUE(WaitShown(screen, "No heterotrainingjobs in namespace " + space.name()));
  lines.Signal(SIGINT);
  EXPECT_EQ(lines.Wait(seconds(60)), 130) << lines.log();
  screen.Type("\x03");
  EXPECT_EQ(screen.Wait(seconds(60)), 130) << screen.text();
  ExpectTidy(screen);
}

// Answers for what is no part of this cluster: metrics-server, and processes in pods.
class Tops : public CommandLine {
 protected:
  Tops() : proxy_(plane_.ProxyOptions()) {
    proxy_.SetRule([this](const ProxiedRequest& request) {
      const auto asks = [&](const char* what) {
        return request.path.find(what) != std::string::npos;
      };
      ProxyAction reply{.kind = ProxyAction::Kind::kReply, .status = 200};
      if (asks("/apis/metrics.k8s.io/v1beta1/")) {
        reply.body = R"({"items": [{"metadata": {"name": "vit-cpu-0"}, "containers": [
                          {"usage": {"cpu": "1500m", "memory": "512Mi"}}]}]})";
      } else if (asks("/pods/vit-head-0:7072/proxy/report.json")) {
        const int look = looks_++;
        reply.body = json({{"verdict", "input-bound: 2 more cpu replicas would help"},
                           {"job", "vit"},
                           {"workers",
                            {Worker("cpu", 0, 300 * look), Worker("cpu", 1, 100 * look),
                             Worker("gpu", 0, 400 * look, 41.5)}}})
                         .dump();
      } else {
        return ProxyAction{};
      }
      return reply;
    });
  }
  static json Worker(const char* role, int index, int samples, double wait = -1) {
    json worker = {{"role", role}, {"index", index}, {"samples", samples}, {"cpuSeconds", 1.0}};
    if (wait >= 0) worker["dataWaitPercent"] = wait;
    return worker;
  }

  std::atomic<int> looks_ = 0;
  ApiProxy proxy_;
};

TEST_F(Tops, EveryPodStandsOnALine) {
  TestNamespace space("top");
  json manifest = MakeJob("vit", {{"steps", 20}, {"holdAtStep", 10}});
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const std::string user = KubeconfigFor(space.name(), "view", proxy_.url());
  const CommandResult once = Hetero({"top", "vit", "--kubeconfig", user});
  EXPECT_EQ(once.exit_code, 0);
  EXPECT_THAT(
      once.output,
      AllOf(HasSubstr("/vit  Running  "), HasSubstr("\ninput-bound: 2 more cpu replicas would"),
            ContainsRegex("\nhead-0  node-[123]  Running  [0-9.-]+ +- +- +- +- +0"),
            ContainsRegex("\ncpu-0 .* 1.50 +512Mi +[0-9.]+ +75.0% +- "),
            ContainsRegex("\ncpu-1 .* 0.00 +- +[0-9.]+ +25.0% +- "),
            ContainsRegex("\ngpu-0 .* 100.0% +41.5% ")));
  PtyProgram screen({"kubectl", "hetero", "top", "vit", "-w", "--kubeconfig", user}, 100, 24);
  ASSERT_TRUE(WaitShown(screen, "75.0%"));
  job.EvictPod("cpu", 1);
  ASSERT_TRUE(WaitShown(screen, "75.0%"));
  job.Continue();
  EXPECT_EQ(screen.Wait(seconds(60)), 0) << "it ends with the job: " << screen.text();
  EXPECT_THAT(screen.text(), HasSubstr("/vit  Succeeded  "));
  ExpectTidy(screen);
  // Nothing changes any more, so the first thing said is the last one.
  const CommandResult finished = Hetero({"top", "vit", "-w", "--kubeconfig", user});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.output, AllOf(HasSubstr("/vit  Succeeded  "), HasSubstr("\nhead-0 "),
                                     Not(HasSubstr("No pods"))));
}

TEST_F(Tops, WithoutFiguresTheRestIsShown) {
  TestNamespace space("top");
  JobUnderTest job(space.name(), MakeJob("vit", {{"steps", 20}, {"holdAtStep", 10}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  const CommandResult once =
      Hetero({"top", "vit", "--kubeconfig", KubeconfigFor(space.name(), "view")});
  EXPECT_EQ(once.exit_code, 0);
  EXPECT_THAT(once.output,
              AllOf(ContainsRegex("\ncpu-1 +node-[123]  Running  -    -       -"),
                    HasSubstr("No figures of pods: that needs the right to get pods/proxy or "
                              "to create pods/portforward in namespace ")));
  PtyProgram screen({"kubectl", "hetero", "top", "vit", "-w", "-n", space.name()}, 80, 24);
  ASSERT_TRUE(WaitShown(screen, "cpu-1 "));
  screen.Type("\x03");
  EXPECT_EQ(screen.Wait(seconds(60)), 130) << screen.text();
  ExpectTidy(screen);
}

}  // namespace
}  // namespace hetero::testing
