#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "api/job_status.h"
#include "base/clock.h"
#include "tests/integration/operator/cost_fixture.h"
#include "tests/support/paths.h"

// What status.cost says of real pods, against their own times as the API shows them.
namespace hetero::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

base::WallTime TimeOf(const json& text) {
  return text.is_string() ? api::ParseTime(text.get<std::string>()).value_or(base::WallTime())
                          : base::WallTime();
}

// All pods that a namespace ever had, with the times that they tell, and between which moments each
// of them went.
class PodWitness {
 public:
  struct Life {
    std::string role;
    std::string node;
    std::string cpu;  // that it asks for
    base::WallTime bound, finished, last_seen, gone;
  };

  explicit PodWitness(std::string name_space)
      : name_space_(std::move(name_space)), watching_([this](std::stop_token stop) {
          while (base::Clock::Real().SleepFor(milliseconds(100), stop)) Look();
        }) {}

  std::map<std::string, Life> Lives() {
    const std::lock_guard lock(mutex_);
    return lives_;
  }

  // The least and the most that they have cost by `dollars(life)` an hour.
  std::pair<double, double> Cost(const std::function<double(const Life&)>& dollars) {
    double least = 0, most = 0;
    for (const auto& [uid, life] : Lives()) {
      if (life.bound == base::WallTime()) continue;
      const bool told = life.finished != base::WallTime();
      const base::WallTime until = life.gone != base::WallTime() ? life.gone : life.last_seen;
      const double price = dollars(life) / 3600;
      // Ends are told in whole seconds: the one in which it was last seen may be that of its end.
      const base::WallTime from = std::chrono::floor<seconds>(life.last_seen);
      least +=
          price * base::ToSeconds((told ? life.finished : std::max(from, life.bound)) - life.bound);
      most += price * base::ToSeconds((told ? life.finished : until) - life.bound);
    }
    return {least, most};
  }

 private:
  void Look() {
    const base::WallTime before = base::Clock::Real().WallNow();
    std::map<std::string, json> there;
    for (json& pod : ControlPlane::Get().Objects(kube::kPods, name_space_)) {
      const std::string uid = pod["metadata"]["uid"];
      there[uid] = std::move(pod);
    }
    const base::WallTime now = base::Clock::Real().WallNow();
    const std::lock_guard lock(mutex_);
    for (auto& [uid, pod] : there) {
      Life& life = lives_[uid];
      life.last_seen = before;
      life.role = pod["metadata"]["labels"].value("training.hetero.dev/role", "");
      life.node = pod["spec"].value("nodeName", "");
      for (const json& container : pod["spec"]["containers"]) {
        if (container["name"] != "runtime") continue;
        const json requests = container.value("resources", json::object());
        life.cpu = requests.value("requests", json::object()).value("cpu", "");
      }
      for (const json& condition : pod["status"].value("conditions", json::array())) {
        if (condition["type"] == "PodScheduled" && condition["status"] == "True") {
          life.bound = TimeOf(condition["lastTransitionTime"]);
        }
      }
      for (const json& container : pod["status"].value("containerStatuses", json::array())) {
        const json state = container.value("state", json::object());
        if (container["name"] != "runtime" || !state.contains("terminated")) continue;
        life.finished = TimeOf(state["terminated"]["finishedAt"]);
      }
    }
    for (auto& [uid, life] : lives_) {
      if (!there.contains(uid) && life.gone == base::WallTime()) life.gone = now;
    }
  }

  const std::string name_space_;
  std::mutex mutex_;
  std::map<std::string, Life> lives_;
  std::jthread watching_;  // last: it ends before the rest
};

double PriceOf(const PodWitness::Life& life) { return PriceOfRole(life.role); }

// Until the status says what its pods have cost, which may be some seconds after the last is gone.
void ExpectCost(const JobUnderTest& job, PodWitness& witness,
                const std::function<double(const PodWitness::Life&)>& price) {
  const auto off = [&] {
    const json status = job.Status();
    const auto [least, most] = witness.Cost(price);
    const double dollars = DollarsOf(status);
    return std::max({0.0, least - dollars, dollars - most}) - DoubtOf(status);
  };
  const auto describe = [&] {
    const auto [least, most] = witness.Cost(price);
    return job.Status()["cost"].dump(1) + "\npods have cost " + std::to_string(least) + " to " +
           std::to_string(most);
  };
  WaitFor(
      "the cost is right", [&] { return off() <= 1e-5; }, seconds(60), describe);
  // And stays so.
  std::this_thread::sleep_for(seconds(2));
  EXPECT_LE(off(), 1e-5) << describe();
}

TEST(Cost, OfReplacedAndScaledPodsUnderAnOperatorThatIsKilled) {
  World::Get();
  OperatorProcess process;
  WaitFor("the operator is ready", [&] { return process.ready(); });
  TestNamespace space("cost");
  PodWitness witness(space.name());
  json manifest = PricedJob(
      "paid", {{"steps", 200}, {"stepMillis", 20}, {"holdAtStep", 150}, {"needed", {{"cpu", 3}}}});
  manifest["spec"]["autoscaling"] = "Enabled";
  RoleOf(manifest, "cpu")["minReplicas"] = 1;
  RoleOf(manifest, "cpu")["maxReplicas"] = 4;
  manifest["spec"]["runPolicy"]["cleanPodPolicy"] = "All";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(job.WaitPods(5)) << "scaled up";

  const std::string ended = job.PodUid("gpu", 0);
  job.EndPod("gpu", 0, 1, "CUDA error");
  WaitFor("the trainer is replaced", [&] {
    const std::string uid = job.PodUid("gpu", 0);
    return !uid.empty() && uid != ended;
  });
  ASSERT_TRUE(job.WaitPods(5));
  std::this_thread::sleep_for(seconds(3));  // money has to be spent

  // One pod goes while nobody looks.
  process.Kill();
  const double known = DollarsOf(job.Status());
  const std::string gone = job.PodUid("cpu", 1);
  ControlPlane::Get().MustKubectl({"delete", "pod", "-n", space.name(), job.PodKey("cpu", 1).name,
                                   "--grace-period=0", "--force"});
  std::this_thread::sleep_for(seconds(3));
  process.Start();
  WaitFor("the pod is made anew", [&] {
    const std::string uid = job.PodUid("cpu", 1);
    return !uid.empty() && uid != gone;
  });
  ASSERT_TRUE(job.WaitPods(5));
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  ASSERT_TRUE(job.WaitGone());
  ExpectCost(job, witness, PriceOf);
  const json cost = job.Status()["cost"];
  EXPECT_GE(DollarsOf(job.Status()), known) << "it never falls";
  EXPECT_GT(cost.value("uncertainSeconds", 0), 0) << "nobody saw when one of them went";
  EXPECT_LT(DoubtOf(job.Status()), DollarsOf(job.Status())) << cost.dump(1);
  int pods = 0;
  for (const json& role : cost["roles"]) pods += role.value("pods", 0);
  const auto lives = witness.Lives();
  const auto bound = std::count_if(lives.begin(), lives.end(), [](const auto& life) {
    return life.second.bound != base::WallTime();
  });
  EXPECT_LE(pods, bound) << cost.dump(1);
  EXPECT_GE(pods, bound - 1) << "but for the one of which no status knew that it had a node";
  EXPECT_FALSE(cost.contains("pricelessPods"));

  const CommandResult shown =
      RunCommand({testing::BinDir() + "/kubectl-hetero", "cost", "paid", "-n", space.name()});
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("POD-HOURS"));
  const CommandResult all =
      RunCommand({testing::BinDir() + "/kubectl-hetero", "cost", "-n", space.name(), "-o", "json"});
  ASSERT_EQ(all.exit_code, 0) << all.output;
  EXPECT_EQ(json::parse(all.output)["dollars"], cost["dollars"]);
  EXPECT_EQ(process.Stop(), 0);
}

TEST(Cost, ABudgetEndsTheJobWithACheckpoint) {
  World::Get();
  OperatorProcess process;
  WaitFor("the operator is ready", [&] { return process.ready(); });
  TestNamespace space("budget");
  PodWitness witness(space.name());
  json manifest = PricedJob("poor", {{"steps", 1'000'000}, {"stepMillis", 20}});
  manifest["spec"]["runPolicy"]["maxDollars"] = "18.00";  // about 15 s
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Failed"));
  EXPECT_EQ(job.Reason("Failed"), "BudgetExceeded") << job.Describe();
  EXPECT_THAT(job.Message("Failed"), HasSubstr("of 18.00 dollars are spent"));
  ASSERT_TRUE(job.WaitGone());
  ExpectCost(job, witness, PriceOf);
  EXPECT_GE(DollarsOf(job.Status()), 18.0);
  EXPECT_EQ(process.Stop(), 0);
}

TEST(Cost, OfSharesOfNodesByAPriceSheet) {
  World::Get();
  ControlPlane& plane = ControlPlane::Get();
  const std::string sheet = plane.folder() + "/prices.yaml";
  std::ofstream(sheet) << "instanceTypes:\n  test.large: {onDemand: 230400, spot: 115200}\n";
  plane.MustKubectl({"label", "nodes", "--all", "--overwrite",
                     "node.kubernetes.io/instance-type=test.large",
                     "karpenter.sh/capacity-type=spot"});
  OperatorProcess process({.arguments = {"--price-sheet", sheet}});
  WaitFor("the operator is ready", [&] { return process.ready(); });
  TestNamespace space("sheet");
  PodWitness witness(space.name());
  json manifest = MakeJob("shared", {{"steps", 100}, {"stepMillis", 50}});
  RoleOf(manifest, "head")["pricePerHour"] = "36";
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  ASSERT_TRUE(job.WaitGone());
  // Of 64 cores a CPU worker has two: 3600 dollars an hour, 7200 on demand. GPU workers of the test
  // ask for nothing.
  for (const auto& [uid, life] : witness.Lives()) {
    if (life.role == "cpu") {
      EXPECT_EQ(life.cpu, "2");
    }
    if (life.role == "gpu") {
      EXPECT_EQ(life.cpu, "");
    }
  }
  ExpectCost(job, witness, [](const PodWitness::Life& life) {
    return life.role == "head" ? kHead : life.role == "cpu" ? 3600.0 : 0;
  });
  const json cost = job.Status()["cost"];
  EXPECT_EQ(cost.value("pricelessPods", 0), 1) << cost.dump(1);
  for (const json& role : cost["roles"]) {
    if (role["name"] != "cpu") continue;
    EXPECT_NEAR(role.value("onDemandDollars", 0.0), 2 * role.value("dollars", 0.0), 1e-5);
  }
  EXPECT_EQ(process.Stop(), 0);
}

}  // namespace
}  // namespace hetero::testing
