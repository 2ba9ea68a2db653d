#include <signal.h>

#include <cstdlib>
#include <fstream>

#include "tests/integration/operator/cli_test_world.h"
#include "tests/support/paths.h"

// The verbs of kubectl hetero but for status, and what they say when something is wrong.
namespace hetero::testing {

OperatorProcess* CommandLine::operator_ = nullptr;

void CommandLine::SetUpTestSuite() {
  static bool on_path = false;
  if (!on_path) {
    setenv("PATH", (testing::BinDir() + ":" + std::getenv("PATH")).c_str(), 1);
    on_path = true;
  }
  World::Get();
  operator_ = new OperatorProcess();
  WaitFor("the operator is ready", [] { return operator_->ready(); });
}

void CommandLine::TearDownTestSuite() {
  EXPECT_EQ(operator_->Stop(), 0);
  delete operator_;
}

CommandResult CommandLine::Hetero(std::vector<std::string> arguments, const std::string& input) {
  arguments.insert(arguments.begin(), {"kubectl", "hetero"});
  return RunCommand(arguments, input);
}

std::string CommandLine::KubeconfigFor(const std::string& name_space, const std::string& role,
                                       const std::string& server) {
  const std::string account = role.empty() ? "nobody" : role;
  const std::string user = name_space + ":" + account;
  plane_.MustKubectl({"create", "serviceaccount", account, "-n", name_space});
  if (!role.empty()) {
    plane_.MustKubectl({"create", "rolebinding", account, "--clusterrole=" + role,
                        "--serviceaccount=" + user, "-n", name_space});
    // The controller manager adds the chart's rules to the cluster's own roles.
    WaitFor("the role holds the chart's rules", [&] {
      return plane_
                 .Kubectl({"auth", "can-i", "get", "htj", "-n", name_space,
                           "--as=system:serviceaccount:" + user})
                 .exit_code == 0;
    });
  }
  return plane_.ServiceAccountKubeconfig(server.empty() ? plane_.server() : server, name_space,
                                         account);
}

bool CommandLine::WaitShown(const PtyProgram& program, const std::string& text,
                            std::chrono::seconds deadline) {
  return WaitFor(
      "the screen shows " + text, [&] { return program.text().find(text) != std::string::npos; },
      deadline, [&] { return program.text(); });
}

void CommandLine::ExpectTidy(const PtyProgram& program) {
  const VirtualScreen screen = program.screen();
  EXPECT_EQ(screen.unknown(), "");
  EXPECT_EQ(screen.wrapped(), 0) << screen.Text();
  EXPECT_TRUE(screen.cursor_visible());
  EXPECT_TRUE(screen.wraps());
  EXPECT_TRUE(program.echoes());
}

namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Verbs : public CommandLine {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string file = plane_.folder() + "/" + name;
    std::ofstream(file) << text;
    return file;
  }
};

TEST_F(Verbs, SuspendAndResumeTwiceEach) {
  TestNamespace space("pause");
  JobUnderTest job(space.name(), MakeJob("pausing", {{"steps", 100000}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  const std::string user = KubeconfigFor(space.name(), "edit");
  const auto run = [&](const char* verb) {
    return Hetero({verb, "pausing", "--kubeconfig", user});
  };
  const CommandResult suspended = run("suspend");
  EXPECT_EQ(suspended.exit_code, 0);
  EXPECT_THAT(suspended.output, HasSubstr("kubectl hetero resume pausing"));
  ASSERT_TRUE(job.WaitIs("Suspended"));
  const CommandResult again = run("suspend");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("is suspended already"));
  const CommandResult shown = Hetero({"status", "pausing", "--once", "--kubeconfig", user});
  EXPECT_THAT(shown.output, AllOf(HasSubstr("pausing  Suspended  "),
                                  HasSubstr("kubectl hetero resume pausing lets it go on")));
  EXPECT_EQ(run("resume").exit_code, 0);
  ASSERT_TRUE(job.WaitIs("Running"));
  EXPECT_EQ(job.Status()["attempt"], 2);
  const CommandResult twice = run("resume");
  EXPECT_EQ(twice.exit_code, 0);
  EXPECT_THAT(twice.output, HasSubstr("is not suspended"));
}

TEST_F(Verbs, ReportOfAnEndedJobOnly) {
  TestNamespace space("report");
  json manifest = MakeJob(
      "vit",
      {{"steps", 20},
       {"holdAtStep", 10},
       {"result",
        {{"accuracy", 0.885}, {"steps", 20}, {"reportUri", "s3://bucket/vit/report.json"}}}});
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  const CommandResult early = Hetero({"report", "vit", "-n", space.name()});
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_THAT(early.output,
              HasSubstr("vit has not ended yet (Running); kubectl hetero status vit"));
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  const CommandResult text = Hetero({"report", "vit", "-n", space.name()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, AllOf(HasSubstr("/vit  Succeeded  took "), HasSubstr("0.8850"),
                                 HasSubstr("s3://bucket/vit/report.json")));
  const CommandResult object = Hetero({"report", "vit", "-n", space.name(), "-o", "json"});
  EXPECT_EQ(json::parse(object.output, nullptr, false), job.Status()["result"]);
  const CommandResult late = Hetero({"suspend", "vit", "-n", space.name()});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_THAT(late.output, HasSubstr("vit has ended (Succeeded); kubectl hetero report vit"));
}

TEST_F(Verbs, ReportOnAVolumeIsReadByAPodThatIsDeletedWhateverHappens) {
  TestNamespace space("reader");
  const auto readers = [&] {
    return plane_.Objects(kube::kPods, space.name(), "app.kubernetes.io/name=hetero-report-reader");
  };
  json manifest =
      MakeJob("vit", {{"steps", 5}, {"result", {{"reportUri", "file:///out/vit/report.json"}}}});
  JobUnderTest plain(space.name(), manifest);
  ASSERT_TRUE(plain.WaitIs("Succeeded"));
  const CommandResult lost = Hetero({"report", "vit", "-n", space.name(), "-o", "json"});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_THAT(lost.output, HasSubstr("the head has no volume mounted there"));

  manifest["metadata"]["name"] = "kept";
  RoleOf(manifest, "head")["template"] = {
      {"spec",
       {{"volumes",
         json::array({{{"name", "out"}, {"persistentVolumeClaim", {{"claimName", "results"}}}}})},
        {"containers",
         json::array(
             {{{"name", "runtime"},
               {"volumeMounts", json::array({{{"name", "out"}, {"mountPath", "/out"}}})}}})}}}};
  // Without a bound claim the scheduler finds no node for the head.
  plane_.MustKubectl({"apply", "-n", space.name(), "-f", "-"},
                     R"({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
      "metadata": {"name": "results"}, "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "",
      "volumeName": "results", "resources": {"requests": {"storage": "1Mi"}}}})");
  plane_.MustKubectl({"apply", "-f", "-"},
                     json({{"apiVersion", "v1"},
                           {"kind", "PersistentVolume"},
                           {"metadata", {{"name", "results"}}},
                           {"spec",
                            {{"capacity", {{"storage", "1Mi"}}},
                             {"accessModes", {"ReadWriteMany"}},
                             {"storageClassName", ""},
                             {"claimRef", {{"namespace", space.name()}, {"name", "results"}}},
                             {"hostPath", {{"path", "/tmp/results"}}}}}})
                         .dump());
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded")) << job.Describe();
  const std::string folder = plane_.folder() + "/saved";
  BackgroundProgram reading(
      {"kubectl", "hetero", "report", "kept", "-n", space.name(), "--save", folder},
      plane_.folder() + "/reading.log");
  ASSERT_TRUE(WaitFor("the reader pod is there", [&] { return readers().size() == 1; }));
  EXPECT_EQ(readers()[0]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "results");
  reading.Signal(SIGINT);
  EXPECT_EQ(reading.Wait(std::chrono::seconds(60)), 130) << reading.log();
  EXPECT_TRUE(WaitFor("the reader pod is gone", [&] { return readers().empty(); }));
  plane_.MustKubectl({"delete", "pv", "results", "--wait=false"});
}

TEST_F(Verbs, ValidateHereAndByTheServer) {
  TestNamespace space("valid");
  json manifest = MakeJob("checked");
  const std::string file = File("checked.json", manifest.dump(1));
  const CommandResult here =
      RunCommand({"env", "KUBECONFIG=/nonexistent", "kubectl-hetero", "validate", file});
  EXPECT_EQ(here.exit_code, 0) << "needs no cluster: " << here.output;
  const CommandResult there = Hetero({"validate", file, "--server", "-n", space.name()});
  EXPECT_EQ(there.exit_code, 0) << there.output;
  EXPECT_THAT(there.output, HasSubstr("the API server would accept it"));
  EXPECT_TRUE(plane_.Object(kJobs, {space.name(), "checked"}).is_null()) << "a dry run only";

  json wrong = manifest;
  wrong["spec"]["roles"][1]["replicaz"] = 3;
  const CommandResult refused = Hetero({"validate", "-"}, wrong.dump(1));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              AllOf(StartsWith("error: standard input is refused:\nspec.roles[1].replicaz"),
                    HasSubstr("replicas")));

  wrong = manifest;
  wrong["spec"]["roles"][1]["template"]["spec"]["containers"] = json::array({{{"name", "main"}}});
  const CommandResult unusable = Hetero({"validate", "-"}, wrong.dump(1));
  EXPECT_EQ(unusable.exit_code, 1) << "the operator would fail the job";
  EXPECT_THAT(unusable.output, HasSubstr("spec.roles[1].template.spec.containers: "));

  // Which fields a pod has only the API server knows.
  wrong = manifest;
  wrong["spec"]["roles"][1]["template"]["spec"]["nodeSelectors"] = {{"disk", "ssd"}};
  const CommandResult strict =
      Hetero({"validate", "-", "--server", "-n", space.name()}, wrong.dump(1));
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.output, HasSubstr("spec.roles[1].template.spec.nodeSelectors"));

  const CommandResult elsewhere = Hetero({"validate", file, "--server", "-n", "nowhere"});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.output, HasSubstr("nowhere"));
  manifest["metadata"]["namespace"] = "other";
  const CommandResult both =
      Hetero({"validate", "-", "--server", "-n", space.name()}, manifest.dump());
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.output, HasSubstr("make them agree"));
}

TEST_F(Verbs, ErrorsSayWhatToDo) {
  TestNamespace space("errors");
  JobUnderTest job(space.name(), MakeJob("there", {{"steps", 3}}));
  const std::string nobody = KubeconfigFor(space.name(), "");
  const std::string unreachable = File("unreachable.json", R"({"apiVersion": "v1",
      "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
      "users": [{"name": "u", "user": {"token": "t"}}],
      "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
      "current-context": "c"})");
  for (const std::string verb : {"status", "logs", "suspend", "resume", "report"}) {
    const auto says = [&](std::vector<std::string> arguments, const std::string& what) {
      arguments.insert(arguments.begin(), verb);
      const CommandResult result = Hetero(arguments);
      EXPECT_EQ(result.exit_code, 1) << result.output;
      EXPECT_THAT(result.output,
                  AllOf(StartsWith("error: "), HasSubstr(what), Not(HasSubstr("/apis/"))));
    };
    says({"absent", "-n", space.name()},
         "there is no heterotrainingjob absent in namespace " + space.name());
    says({"there", "-n", "nowhere"}, "there is no heterotrainingjob there in namespace nowhere");
    says({"there", "--kubeconfig", nobody}, "ask for the right to get heterotrainingjobs");
    says({"there", "--kubeconfig", unreachable}, "127.0.0.1:1");
    says({"there", "--kubeconfig", "/nonexistent"}, "/nonexistent");
    says({"there", "--context", "elsewhere"}, "elsewhere");
  }
}

TEST_F(Verbs, LogsOfEveryPodInOrder) {
  TestNamespace space("logs");
  JobUnderTest job(space.name(), MakeJob("talks", {{"steps", 100000}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  // No kubelet is there to write logs: the proxy answers in its place.
  ApiProxy proxy(plane_.ProxyOptions());
  std::atomic<bool> gpu_starts = true;
  proxy.SetRule([&gpu_starts](const ProxiedRequest& request) {
    const size_t pod = request.path.find("/pods/talks-");
    if (pod == std::string::npos || request.path.find("/log?") == std::string::npos) {
      return ProxyAction{};
    }
    const size_t name = pod + 6;
    const std::string who = request.path.substr(name, request.path.find('/', name) - name);
    if (who == "talks-gpu-0" && gpu_starts.exchange(false)) {
      return ProxyAction{.kind = ProxyAction::Kind::kReply,
                         .status = 400,
                         .body = R"({"kind": "Status", "code": 400, "reason": "BadRequest",
                                     "message": "container is waiting to start"})"};
    }
    return ProxyAction{.kind = ProxyAction::Kind::kReply,
                       .status = 200,
                       .body = "hello from " + who + "\nstep 1\n"};
  });
  const std::string user = KubeconfigFor(space.name(), "view", proxy.url());
  const CommandResult waiting = Hetero({"logs", "talks", "--role", "gpu", "--kubeconfig", user});
  EXPECT_EQ(waiting.exit_code, 1);
  EXPECT_EQ(waiting.output, "gpu-0 | error: 400 BadRequest: container is waiting to start\n");
  const CommandResult all = Hetero({"logs", "talks", "--kubeconfig", user});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.output,
            "head-0 | hello from talks-head-0\nhead-0 | step 1\n"
            "cpu-0  | hello from talks-cpu-0\ncpu-0  | step 1\n"
            "cpu-1  | hello from talks-cpu-1\ncpu-1  | step 1\n"
            "gpu-0  | hello from talks-gpu-0\ngpu-0  | step 1\n");
  const CommandResult one =
      Hetero({"logs", "talks", "--role", "cpu", "--index", "1", "--kubeconfig", user});
  EXPECT_EQ(one.output, "cpu-1 | hello from talks-cpu-1\ncpu-1 | step 1\n");
  const CommandResult role = Hetero({"logs", "talks", "--role", "tpu", "--kubeconfig", user});
  EXPECT_EQ(role.exit_code, 1);
  EXPECT_THAT(role.output, HasSubstr("has no role tpu; it has head, cpu, gpu"));

  // Followed: waits for a container that starts late, and ends with the job.
  gpu_starts = true;
  BackgroundProgram follow({"kubectl", "hetero", "logs", "talks", "-f", "--kubeconfig", user},
                           plane_.folder() + "/follow.log");
  WaitFor(
      "the trainer's log is followed",
      [&] { return follow.log().find("gpu-0  | hello from talks-gpu-0") != std::string::npos; },
      seconds(20), [&] { return follow.log(); });
  EXPECT_THAT(follow.log(), HasSubstr("gpu-0  | 400 BadRequest: container is waiting to start"));
  EXPECT_TRUE(follow.running()) << "the job goes on, and a pod may be recreated";
  const std::string before = job.PodUid("cpu", 1);
  job.EndPod("cpu", 1, 1);
  WaitFor(
      "the log of the next cpu-1 follows",
      [&] {
        const std::string log = follow.log();
        const std::string line = "cpu-1  | hello from talks-cpu-1";
        return log.find(line) != log.rfind(line);
      },
      seconds(30), [&] { return follow.log(); });
  EXPECT_NE(job.PodUid("cpu", 1), before);
  job.Delete();
  EXPECT_EQ(follow.Wait(seconds(30)), 0) << follow.log();
}

TEST_F(Verbs, LogsThatCannotBeHad) {
  TestNamespace space("nologs");
  JobUnderTest job(space.name(), MakeJob("quiet", {{"steps", 3}}));
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  ASSERT_TRUE(job.WaitGone());
  const CommandResult gone = Hetero({"logs", "quiet", "-n", space.name()});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.output, HasSubstr("quiet has no pods now; kubectl hetero status quiet"));
  const CommandResult followed = Hetero({"logs", "quiet", "-f", "-n", space.name()});
  EXPECT_EQ(followed.exit_code, 1) << "there will never be any: " << followed.output;

  // Nodes without a kubelet: the API server's words, one line per pod.
  JobUnderTest other(space.name(), MakeJob("mute", {{"steps", 100000}, {"stepMillis", 50}}));
  ASSERT_TRUE(other.WaitIs("Running"));
  const CommandResult mute = Hetero({"logs", "mute", "-n", space.name(), "--role", "head"});
  EXPECT_EQ(mute.exit_code, 1);
  EXPECT_THAT(mute.output, AllOf(StartsWith("head-0 | error: "), Not(HasSubstr("/log?"))));
}

}  // namespace
}  // namespace hetero::testing
