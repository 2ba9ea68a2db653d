#include "fake_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "api/job_resource.h"
#include "api/labels.h"
#include "base/log.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// Thousands of lines nobody reads; HETERO_LOG_LEVEL=info brings them back.
const bool kQuiet = [] {
  log::Init("test", log::Level::kOff);
  return true;
}();

template <typename T, typename Project>
void SyncStore(kube::Store<T>& store, const std::map<std::string, json>& objects,
               const Project& project) {
  for (const kube::ObjectKey& key : store.Keys()) {
    if (!objects.contains(key.ToString())) store.Remove(key);
  }
  for (const auto& [text, object] : objects) {
    const kube::ObjectKey key = kube::ObjectKey::Parse(text);
    store.Put(key, project(object, store.Get(key)));
  }
}

// What the operator's watches of children select.
std::map<std::string, json> Watched(std::map<std::string, json> objects) {
  std::erase_if(objects, [](const auto& entry) {
    const json labels = entry.second["metadata"].value("labels", json::object());
    return labels.value(api::kManagedByLabel, "") != api::kManagedByValue;
  });
  return objects;
}

std::string KeyOf(const std::string& name) { return "team/" + name; }

constexpr char kSpec[] = R"(
{"dataset": {"uri": "synthetic://", "samples": 64, "classes": 10,
             "image": {"height": 8, "width": 8, "channels": 3}},
 "training": {"model": {"name": "mlp"}, "batchSizePerWorker": 4, "maxSteps": 10},
 "roles": [{"name": "head", "type": "Head"},
           {"name": "cpu", "type": "CPUWorker", "replicas": 2},
           {"name": "gpu", "type": "GPUWorker"}]})";

}  // namespace

struct FakeCluster::Process {
  Process(FakeCluster& cluster, Stores stores)
      : client(cluster.api, cluster.clock, registry, {}),
        events_client(no_events, cluster.clock, registry, {}),
        events(events_client, cluster.clock, {}),
        reconciler(client, cluster.clock, registry, stores, events, cluster.heads,
                   cluster.identity_, {.settings = cluster.settings, .parallelism = 1}) {}

  metrics::Registry registry;
  FakeApi no_events;  // events would only be in the way of counting writes
  kube::Client client;
  kube::Client events_client;
  kube::EventRecorder events;
  Reconciler reconciler;
};

FakeCluster::FakeCluster()
    : pods_(OwnerOf<plan::ObservedPod>),
      services_(OwnerOf<plan::ObservedObject>),
      config_maps_(OwnerOf<plan::ObservedObject>),
      network_policies_(OwnerOf<plan::ObservedObject>),
      pod_groups_(OwnerOf<plan::ObservedObject>),
      workloads_(OwnerOf<plan::ObservedWorkload>),
      identity_(*IssueOperatorIdentity(clock.WallNow())) {
  Restart();
}

FakeCluster::~FakeCluster() = default;

void FakeCluster::Restart() {
  dead = false;
  process_.reset();
  heads.followed.clear();
  process_ = std::make_unique<Process>(
      *this, Stores{.jobs = &jobs_,
                    .pods = &pods_,
                    .services = &services_,
                    .config_maps = &config_maps_,
                    .network_policies = &network_policies_,
                    .workloads = &workloads_,
                    .flavors = &flavors_,
                    .priorities = &priorities_,
                    .queues_served = [this](const std::string&) { return queues_served; },
                    .pod_groups = {{children::GangApi::kVolcano, &pod_groups_}},
                    .gang_served = [this](children::GangApi,
                                          const std::string&) { return pod_groups_served; }});
}

std::string FakeCluster::CreateJob(const std::string& name, const std::string& more_spec,
                                   const json& labels) {
  json spec = json::parse(kSpec);
  if (!more_spec.empty()) spec.merge_patch(json::parse(more_spec));
  return api.Put("heterotrainingjobs", KeyOf(name),
                 {{"apiVersion", api::kApiVersion},
                  {"kind", api::kKind},
                  {"metadata", {{"labels", labels}}},
                  {"spec", spec}});
}

void FakeCluster::Sync() {
  SyncStore(jobs_, api.Objects("heterotrainingjobs"), ProjectJob);
  SyncStore(pods_, Watched(api.Objects("pods")),
            [](const json& object, const auto&) { return ProjectPod(object); });
  const auto project = [](const json& object, const auto&) { return ProjectObject(object); };
  SyncStore(services_, Watched(api.Objects("services")), project);
  SyncStore(config_maps_, Watched(api.Objects("configmaps")), project);
  SyncStore(network_policies_, Watched(api.Objects("networkpolicies")), project);
  SyncStore(pod_groups_, Watched(api.Objects("podgroups")), [](const json& object, const auto&) {
    return ProjectPodGroup(object, children::GangApi::kVolcano);
  });
  SyncStore(workloads_, Watched(api.Objects("workloads")),
            [](const json& object, const auto&) { return ProjectWorkload(object); });
  for (const auto& [key, object] : api.Objects("resourceflavors")) {
    flavors_.Put({"", kube::ObjectKey::Parse(key).name}, ProjectFlavor(object));
  }
  for (const auto& [key, object] : api.Objects("workloadpriorityclasses")) {
    priorities_.Put({"", kube::ObjectKey::Parse(key).name}, ProjectPriority(object));
  }
}

absl::StatusOr<controller::Controller::Result> FakeCluster::Pass(const std::string& name,
                                                                 std::stop_token stop) {
  return process_->reconciler.Reconcile(KeyOf(name), std::move(stop));
}

std::string FakeCluster::Fingerprint() const {
  json all;
  for (const char* plural : {"heterotrainingjobs", "pods", "services", "secrets", "configmaps",
                             "networkpolicies", "workloads", "podgroups"}) {
    all[plural] = api.Objects(plural);
  }
  return all.dump();
}

bool FakeCluster::Settle(const std::string& name) {
  int quiet = 0;
  for (int i = 0; i < 50; ++i) {
    Sync();
    const std::string before = Fingerprint();
    const bool ok = Pass(name).ok() && !dead;
    if (dead) Restart();
    clock.Advance(std::chrono::milliseconds(100));
    quiet = ok && Fingerprint() == before ? quiet + 1 : 0;
    if (quiet == 2) return true;
  }
  return false;
}

api::JobStatus FakeCluster::Status(const std::string& name) const {
  const json object = api.Objects("heterotrainingjobs").at(KeyOf(name));
  return ProjectJob(object, nullptr)->status;
}

plan::ObservedPod FakeCluster::Pod(const std::string& name) const {
  return *ProjectPod(api.Objects("pods").at(KeyOf(name)));
}

void FakeCluster::RunPods() {
  for (const auto& [key, object] : api.Objects("pods")) {
    if (ProjectPod(object)->phase != "Pending") continue;
    api.Change("pods", key, [](json& pod) {
      pod["spec"]["nodeName"] = "node-1";
      pod["status"] = json::parse(R"({"phase": "Running",
          "conditions": [{"type": "Ready", "status": "True"}],
          "containerStatuses": [{"name": "runtime", "state": {"running": {}}}]})");
    });
  }
}

void FakeCluster::EndContainer(const std::string& pod, int exit_code, const std::string& message) {
  api.Change("pods", KeyOf(pod), [&](json& object) {
    object["status"] = json::parse(R"({"containerStatuses": [{"name": "runtime",
        "state": {"terminated": {"finishedAt": "2026-01-01T00:01:00Z"}}}]})");
    object["status"]["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
    json& terminated = object["status"]["containerStatuses"][0]["state"]["terminated"];
    terminated["exitCode"] = exit_code;
    terminated["reason"] = exit_code == 0 ? "Completed" : "Error";
    terminated["message"] = message;
  });
}

void FakeCluster::FinishTerminating() {
  for (const auto& [key, object] : api.Objects("pods")) {
    if (object["metadata"].contains("deletionTimestamp")) api.Remove("pods", key);
  }
}

void FakeCluster::Admit(const std::string& name) {
  api.Change("workloads", KeyOf(name + "-gang"), [](json& workload) {
    json assignments = json::array();
    for (const json& set : workload["spec"]["podSets"]) {
      assignments.push_back({{"name", set["name"]},
                             {"count", set["count"]},
                             {"flavors", {{"cpu", "on-demand"}, {"memory", "on-demand"}}}});
    }
    workload["status"]["admission"] = {{"clusterQueue", "all"},
                                       {"podSetAssignments", std::move(assignments)}};
    workload["status"]["conditions"] = json::parse(R"([
        {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "in all",
         "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}])");
  });
}

void FakeCluster::Evict(const std::string& name) {
  api.Change("workloads", KeyOf(name + "-gang"), [](json& workload) {
    workload["status"]["conditions"].push_back(
        json::parse(R"({"type": "Evicted", "status": "True", "reason": "Preempted",
                        "message": "others", "lastTransitionTime": "2026-01-01T00:00:00Z"})"));
  });
}

void FakeCluster::HeadSays(const std::string& name, plan::HeadReport::State state) {
  plan::HeadReport report;
  report.state = state;
  report.connected = true;
  report.last_heard = report.last_step_time = clock.WallNow();
  report.attempt = Status(name).attempt;
  report.generation = 1;
  report.roles["cpu"] = {.desired = 2, .registered = 2};
  report.roles["gpu"] = {.desired = 1, .registered = 1};
  if (state == plan::HeadReport::State::kSucceeded) {
    report.verdict = api::Verdict{.succeeded = true, .message = "trained 10 steps"};
    report.verdict->result.steps = 10;
  }
  heads.reports[KeyOf(name)] = report;
}

void FakeCluster::Start(const std::string& name) {
  ASSERT_TRUE(Settle(name));
  RunPods();
  ASSERT_TRUE(Settle(name));
  HeadSays(name, plan::HeadReport::State::kRunning);
  ASSERT_TRUE(Settle(name));
}

std::string DieAtEachWrite(const std::function<std::string(FakeCluster&)>& live,
                           FakeApi::Fate fate) {
  FakeCluster calm;
  const std::string undisturbed = live(calm);
  const size_t writes = calm.api.writes().size();
  EXPECT_GE(writes, 10u);
  for (size_t n = 0; n < writes; ++n) {
    SCOPED_TRACE(n);
    FakeCluster cluster;
    bool struck = false;
    cluster.api.SetDecide([&](int nth, const kube::Request&) {
      if (cluster.dead) return FakeApi::Fate::kLoseRequest;
      if (struck || nth != static_cast<int>(n)) return FakeApi::Fate::kPass;
      struck = cluster.dead = true;
      return fate;
    });
    EXPECT_EQ(live(cluster), undisturbed);
    EXPECT_TRUE(struck);
    if (::testing::Test::HasFailure()) break;
  }
  return undisturbed;
}

int CountWrites(const FakeApi& api, const std::string& method, const std::string& part) {
  const auto writes = api.writes();
  return static_cast<int>(std::count_if(writes.begin(), writes.end(), [&](const auto& write) {
    return write.method == method && write.path.find(part) != std::string::npos;
  }));
}

std::string ReasonOf(const api::JobStatus& status, api::ConditionType type) {
  const api::Condition* condition = status.Find(type);
  return condition == nullptr ? "absent" : condition->reason;
}

}  // namespace hetero::reconcile
