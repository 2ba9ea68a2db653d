// What status.cost says, against the API server's audit log: every binding, end and removal of a
// pod as the server did it. Needs HETERO_CLUSTER_AUDIT.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "api/job_status.h"
#include "base/clock.h"
#include "tests/integration/operator/cost_fixture.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

std::optional<base::WallTime> TimeIn(const json& object, const char* field) {
  const auto time = api::ParseTime(object.value(field, ""));
  if (!time.ok()) return std::nullopt;
  return *time;
}

// A pod's life between moments that are known to the second.
struct PodLife {
  std::string role;
  std::optional<base::WallTime> bound_from, bound_until;
  std::optional<base::WallTime> end_from, end_until;
};

class PodLog {
 public:
  PodLog(const std::string& file, const std::string& name_space) : name_space_(name_space) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
      // Events of other kinds have no body here; an unfinished last line is no object.
      if (event.is_object() && event.value("stage", "") == "ResponseComplete") See(event);
    }
  }

  size_t pods() const { return lives_.size(); }

  // The least and the most dollars.
  std::pair<double, double> Cost() const {
    double least = 0, most = 0;
    for (const PodLife& life : lives_) {
      if (!life.bound_from) continue;
      EXPECT_TRUE(life.end_from) << "a pod of " << life.role << " has not ended";
      if (!life.end_from) continue;
      const double price = PriceOfRole(life.role) / 3600;
      least += price * std::max(0.0, base::ToSeconds(*life.end_from - *life.bound_until));
      most += price * std::max(0.0, base::ToSeconds(*life.end_until - *life.bound_from));
    }
    return {least, most};
  }

 private:
  // Kubernetes writes whole seconds.
  static base::WallTime Floor(base::WallTime time) { return std::chrono::floor<seconds>(time); }

  void See(const json& event) {
    const json reference = event.value("objectRef", json::object());
    if (reference.value("resource", "") != "pods" ||
        reference.value("namespace", "") != name_space_ ||
        event.value("responseStatus", json::object()).value("code", 500) >= 300) {
      return;
    }
    const std::string verb = event.value("verb", ""), part = reference.value("subresource", "");
    const std::string name = reference.value("name", "");
    const base::WallTime from = Floor(*TimeIn(event, "requestReceivedTimestamp"));
    const base::WallTime until = Floor(*TimeIn(event, "stageTimestamp"));
    const json object = event.value("responseObject", json::object());
    if (verb == "create" && part.empty()) {
      lives_.push_back(
          {.role = object["metadata"]["labels"].value("training.hetero.dev/role", "")});
      current_[object["metadata"]["name"]] = lives_.size() - 1;
      return;
    }
    const auto known = current_.find(name);
    if (known == current_.end()) return;
    PodLife& life = lives_[known->second];
    if (verb == "create" && part == "binding") {
      life.bound_from = from;
      life.bound_until = until;
    } else if (verb == "patch" && part == "status") {
      SeeEnd(object, life);
    } else if (verb == "delete" && !life.end_from.has_value()) {
      // The last of several: the first asks for the end, and another one takes the object away.
      removed_[known->second] = {from, until + seconds(1)};
    }
    if (verb != "delete" || object.value("kind", "") != "Pod") return;
    const json grace = object["metadata"].value("deletionGracePeriodSeconds", json(0));
    if (grace != 0 || life.end_from) return;
    life.end_from = removed_[known->second].first;
    life.end_until = removed_[known->second].second;
  }

  static void SeeEnd(const json& pod, PodLife& life) {
    for (const json& container :
         pod.value("status", json::object()).value("containerStatuses", json::array())) {
      const json state = container.value("state", json::object());
      if (container.value("name", "") != "runtime" || !state.contains("terminated")) continue;
      const auto finished = TimeIn(state["terminated"], "finishedAt");
      if (!finished) continue;
      life.end_from = life.end_until = *finished;
    }
  }

  const std::string name_space_;
  std::vector<PodLife> lives_;
  std::map<std::string, size_t> current_;  // the newest pod of a name
  std::map<size_t, std::pair<base::WallTime, base::WallTime>> removed_;
};

TEST(CostReplay, OfTheAuditLogIsWhatTheStatusSays) {
  const char* const folder = std::getenv("HETERO_TEST_CLUSTER_DIR");
  if (std::getenv("HETERO_CLUSTER_AUDIT") == nullptr || folder == nullptr) {
    GTEST_SKIP() << "HETERO_CLUSTER_AUDIT=1 is needed: the replay of the audit log is NOT TESTED";
  }
  World::Get();
  OperatorProcess process;
  WaitFor("the operator is ready", [&] { return process.ready(); });
  TestNamespace space("replay");
  json manifest = PricedJob(
      "replayed",
      {{"steps", 400}, {"stepMillis", 20}, {"holdAtStep", 350}, {"needed", {{"cpu", 3}}}});
  manifest["spec"]["autoscaling"] = "Enabled";
  RoleOf(manifest, "cpu")["minReplicas"] = 1;
  RoleOf(manifest, "cpu")["maxReplicas"] = 4;
  JobUnderTest job(space.name(), manifest);
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(job.WaitPods(5)) << "scaled up";

  const auto replaced = [&](const std::string& role, const std::string& before) {
    return WaitFor("another pod of " + role, [&] {
      const std::string uid = job.PodUid(role, 0);
      return !uid.empty() && uid != before;
    });
  };
  std::string before = job.PodUid("head", 0);
  job.EndPod("head", 0, 139);  // is replaced alone
  ASSERT_TRUE(replaced("head", before));
  ASSERT_TRUE(job.WaitPods(5));
  before = job.PodUid("gpu", 0);
  process.Kill();
  job.EndPod("gpu", 0, 1, "CUDA error");  // the only trainer, while nobody looks
  std::this_thread::sleep_for(seconds(2));
  process.Start();
  ASSERT_TRUE(replaced("gpu", before));
  WaitFor("the second attempt runs",
          [&] { return job.Is("Running") && job.Status()["attempt"] == 2; });
  process.Stop();
  process.Start();
  std::this_thread::sleep_for(seconds(2));
  job.Continue();
  ASSERT_TRUE(job.WaitIs("Succeeded", seconds(120)));
  ASSERT_TRUE(job.WaitGone());
  std::this_thread::sleep_for(seconds(5));  // news of the last pods

  const PodLog log(std::string(folder) + "/audit.log", space.name());
  const auto [least, most] = log.Cost();
  const json status = job.Status();
  std::printf("%zu pods: the audit log says $%.4f to $%.4f, the status $%.4f, uncertain $%.4f\n",
              log.pods(), least, most, DollarsOf(status), DoubtOf(status));
  EXPECT_GE(log.pods(), 11u) << "five, a head, and a second attempt's five";
  // All of them told when they ended, so that no guess is in the sum; the doubt is of the time in
  // which nobody looked, about 16 s of a job that costs a dollar a second.
  EXPECT_GE(DollarsOf(status), least - 1e-5) << status["cost"].dump(1);
  EXPECT_LE(DollarsOf(status), most + 1e-5) << status["cost"].dump(1);
  EXPECT_GT(DoubtOf(status), 0) << status["cost"].dump(1);
  EXPECT_LT(DoubtOf(status), 30) << status["cost"].dump(1);
  EXPECT_EQ(process.Stop(), 0);
}

}  // namespace
}  // namespace hetero::testing
