// Nodes that are taken away again and again, as spot machines are: a notice, a drain, a crash. No
// step is done twice, and the weights are those of a job that was left alone. HETERO_SPOT_DRILLS=3
// is a quarter of an hour less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <set>
#include <thread>

#include "api/job_status.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// How often; jobs are long enough for it.
int Drills() {
  const char* drills = std::getenv("HETERO_SPOT_DRILLS");
  return drills == nullptr ? 10 : std::max(1, std::atoi(drills));
}

constexpr seconds kPatience(300);
constexpr seconds kWholeJob(1200);  // minutes, where processors are not wanted for other things
// The shortest notice that a cloud gives. What the head has heard by then it has handed on.
constexpr seconds kNotice(15);
constexpr char kTaint[] = "karpenter.sh/disrupted";

json SpotJob() {
  json job = SlowJob("spot");
  MountData(job);
  json& training = job["spec"]["training"];
  training["epochs"] = 3 * Drills();
  // Notices and ordered ends alone write any before the last.
  training["checkpoint"] = {{"uri", "file:///data/checkpoints"}, {"everySteps", 1000000}};
  job["spec"]["output"]["uri"] = "file:///data/output";
  return job;
}

class Drill {
 public:
  explicit Drill(const std::string& prefix) : space_(prefix), job_(space_.name(), SpotJob()) {}

  const JobUnderTest& job() const { return job_; }
  const std::string& name_space() const { return space_.name(); }
  json Report() const {
    return json::parse(ReadFileOrDie(space_.folder() + "/output/report.json"));
  }
  std::string Weights() const {
    return ReadFileOrDie(space_.folder() + "/output/model.safetensors");
  }
  // Folders of checkpoints that were written to their end.
  std::set<std::string> Checkpoints() const {
    std::set<std::string> found;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(space_.folder() + "/checkpoints", ignored)) {
      if (std::filesystem::exists(entry.path() / "DONE")) found.insert(entry.path().filename());
    }
    return found;
  }
  std::string NodeOf(const std::string& role, int index) const {
    const json pod = job_.Pod(role, index);
    return pod.is_object() ? pod["spec"].value("nodeName", "") : "";
  }
  int PodsOn(const std::string& node) const {
    int count = 0;
    for (const json& pod : ControlPlane::Get().Objects(kube::kPods, name_space())) {
      if (pod["spec"].value("nodeName", "") == node) ++count;
    }
    return count;
  }

  // The node of one trainer bears the taint, is drained, crashes, and is back.
  void TakeNode(int round) const;

 private:
  JobNamespace space_;
  JobUnderTest job_;
};

void Drill::TakeNode(int round) const {
  ControlPlane& plane = ControlPlane::Get();
  const std::string node = NodeOf("gpu", round % 2);
  ASSERT_FALSE(node.empty()) << job_.Describe();
  const std::set<std::string> before = Checkpoints();
  plane.MustKubectl({"taint", "node", node, std::string(kTaint) + ":NoSchedule"});
  const auto drained_at = std::chrono::steady_clock::now() + kNotice;
  WaitFor(
      "a checkpoint by notice", [&] { return Checkpoints() != before; }, kPatience,
      [&] { return job_.Describe(); });
  std::this_thread::sleep_until(drained_at);
  plane.MustKubectl({"cordon", node});
  plane.MustKubectl({"drain", node, "--pod-selector=training.hetero.dev/job-name=spot",
                     "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=240s"});
  EXPECT_EQ(PodsOn(node), 0);
  const std::vector<json> operators =
      plane.Objects(kube::kPods, kSystemNamespace, "app.kubernetes.io/name=hetero-operator");
  const bool with_operator = std::any_of(operators.begin(), operators.end(), [&](const json& pod) {
    return pod["spec"].value("nodeName", "") == node;
  });
  if (!with_operator) Nodes::Reboot(node);
  EXPECT_TRUE(WaitStep(job_, StepOf(job_) + 5)) << "round " << round;
  plane.MustKubectl({"wait", "--for=condition=Ready", "node/" + node, "--timeout=120s"});
  plane.MustKubectl({"taint", "node", node, std::string(kTaint) + "-"});
  plane.MustKubectl({"uncordon", node});
}

double RecoveryOf(const json& report, const std::string& what) {
  for (const json& fault : report["faults"]) {
    if (fault.value("what", "").find(what) != std::string::npos) {
      return fault.value("recoverySeconds", -1.0);
    }
  }
  return -1;
}

// Between the end of an attempt and the beginning of the next, on average.
double SecondsBetweenAttempts(const json& report) {
  double gaps = 0;
  const json& attempts = report["attempts"];
  for (size_t i = 1; i < attempts.size(); ++i) {
    const auto before = api::ParseTime(attempts[i - 1].value("time", ""));
    const auto begin = api::ParseTime(attempts[i].value("time", ""));
    EXPECT_TRUE(before.ok() && begin.ok()) << attempts;
    if (!before.ok() || !begin.ok()) return -1;
    gaps += base::ToSeconds(*begin - *before) - attempts[i - 1].value("seconds", 0.0);
  }
  return attempts.size() < 2 ? -1 : gaps / static_cast<double>(attempts.size() - 1);
}

TEST(Spot, TenNodesGoAndNoStepIsDoneTwice) {
  Installation::Get();
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  ASSERT_FALSE(SharedFolder().empty());
  json local = SpotJob();
  local["spec"]["training"].erase("checkpoint");
  const std::string digest = LocalReport(local).value("streamDigest", "");
  ASSERT_FALSE(digest.empty());
  Drill calm("spot-calm"), killed("spot-killed");
  ASSERT_TRUE(WaitStep(killed.job(), 10));
  const std::string trainer = killed.job().PodUid("gpu", 1);
  Nodes::KillRuntime(killed.name_space(), killed.job().PodKey("gpu", 1).name);
  ASSERT_TRUE(WaitReplaced(killed.job(), "gpu", 1, trainer));
  for (const Drill* one : {&calm, &killed}) {
    ASSERT_TRUE(one->job().WaitIs("Succeeded", kWholeJob)) << one->job().Describe();
    ExpectSucceededWithDigest(one->job(), digest);
  }

  Drill drill("spot");
  ASSERT_TRUE(WaitStep(drill.job(), 10));
  int drills = 0;
  for (; drills < Drills() && !drill.job().Is("Succeeded"); ++drills) {
    drill.TakeNode(drills);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(drills, Drills()) << "the job was over too soon";
  const json status = drill.job().Status();
  EXPECT_EQ(status.value("restarts", 0), 0) << status.dump(1);
  const std::string events = ControlPlane::Get().MustKubectl(
      {"get", "events", "-n", drill.name_space(), "--field-selector", "reason=NodeLeaving"});
  EXPECT_THAT(events, HasSubstr(kTaint));
  ASSERT_TRUE(drill.job().WaitIs("Succeeded", kWholeJob)) << drill.job().Describe();
  ExpectSucceededWithDigest(drill.job(), digest);
  const json report = drill.Report();
  EXPECT_EQ(report["stepsRedone"], 0);
  EXPECT_EQ(drill.Weights(), calm.Weights());
  EXPECT_EQ(calm.Report()["disruptions"], json::array());
  EXPECT_GE(report["disruptions"].size(), static_cast<size_t>(drills));
  std::cout << std::fixed << std::setprecision(2);
  for (const json& disruption : report["disruptions"]) {
    EXPECT_GE(disruption.value("checkpointSeconds", -1.0), 0) << disruption;
    std::cout << disruption.value("member", "") << ": saved "
              << disruption.value("checkpointSeconds", -1.0) << " s after the notice\n";
  }
  std::cout << report["attempts"].size() - 1
            << " times all pods had to go: " << SecondsBetweenAttempts(report)
            << " s without a process; a trainer that was killed (kill -9) was replaced after "
            << RecoveryOf(killed.Report(), "gpu-1 was") << " s\n";
}

}  // namespace
}  // namespace hetero::testing
