#include "tests/integration/operator/queue_fixture.h"

namespace hetero::testing {

OperatorProcess* Queues::operator_ = nullptr;

TeamQueue::TeamQueue(const std::string& prefix, int cpus, const json& more) : space_(prefix) {
  const std::string& name = space();
  json queue = {
      {"apiVersion", "kueue.x-k8s.io/v1beta2"},
      {"kind", "ClusterQueue"},
      {"metadata", {{"name", name}}},
      {"spec",
       {{"namespaceSelector", json::object()},
        {"preemption", {{"withinClusterQueue", "LowerPriority"}}},
        {"resourceGroups",
         {{{"coveredResources", {"cpu"}},
           {"flavors",
            {{{"name", "pool"},
              {"resources", {{{"name", "cpu"}, {"nominalQuota", std::to_string(cpus)}}}}}}}}}}}}};
  queue["spec"].merge_patch(more);
  const json local = {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                      {"kind", "LocalQueue"},
                      {"metadata", {{"name", "team"}, {"namespace", name}}},
                      {"spec", {{"clusterQueue", name}}}};
  for (const json& object : {queue, local}) {
    ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, object.dump());
  }
}

TeamQueue::~TeamQueue() {
  ControlPlane::Get().Kubectl({"delete", "clusterqueue", space(), "--wait=false"});
}

std::string TeamQueue::Usage() const {
  const json queue = ControlPlane::Get().Object(kClusterQueues, {"", space()});
  if (!queue.is_object() || !queue.contains("status")) return "";
  for (const json& flavor : queue["status"].value("flavorsReservation", json::array())) {
    for (const json& resource : flavor["resources"]) {
      if (resource["name"] == "cpu") return resource["total"];
    }
  }
  return "";
}

bool TeamQueue::WaitUsage(const std::string& cpus) const {
  return WaitFor("the queue of " + space() + " counts " + cpus + " CPUs",
                 [&] { return Usage() == cpus; });
}

RequestSampler::RequestSampler(std::string name_space)
    : thread_([this, name_space = std::move(name_space)](std::stop_token stop) {
        while (!stop.stop_requested()) {
          int now = 0;
          for (const json& pod : ControlPlane::Get().Objects(kube::kPods, name_space)) {
            const std::string phase = pod["status"].value("phase", "");
            now += phase != "Succeeded" && phase != "Failed";
          }
          most_ = std::max(most_.load(), now);
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
      }) {}

void Queues::Begin(OperatorProcess::Options options) {
  World::Get().InstallKueue();
  const char* const objects = R"({"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "pool"},
       "spec": {"nodeLabels": {"fake.hetero.dev/node": "true"},
                "tolerations": [{"key": "spot", "operator": "Exists"}]}},
      {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
       "metadata": {"name": "high"}, "value": 1000},
      {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
       "metadata": {"name": "low"}, "value": -10}]})";
  ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, objects);
  operator_ = new OperatorProcess(std::move(options));
  WaitFor("the operator is ready", [] { return operator_->ready(); });
}

void Queues::TearDownTestSuite() {
  EXPECT_EQ(operator_->Stop(), 0);
  delete operator_;
  operator_ = nullptr;
}

json Queues::Queued(const std::string& name, int cpu, int gpu) {
  json job = MakeJob(name, {{"steps", 20}, {"holdAtStep", 10}}, cpu, gpu);
  job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  for (json& role : job["spec"]["roles"]) {
    role["template"]["spec"]["containers"] = {
        {{"name", "runtime"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}};
  }
  return job;
}

json Queues::Elastic(const std::string& name, int cpu) {
  json job = Queued(name, cpu);
  RoleOf(job, "cpu")["minReplicas"] = 1;
  job["spec"]["scheduling"]["elasticPriorityClass"] = "low";
  return job;
}

int Queues::CpuWorkers(const JobUnderTest& job) {
  int running = 0;
  for (int i = 0; i < 10; ++i) {
    const json pod = job.Pod("cpu", i);
    running += pod.is_object() && pod["status"].value("phase", "") == "Running" &&
               !pod["metadata"].contains("deletionTimestamp");
  }
  return running;
}

json Queues::Workload(const JobUnderTest& job) {
  return ControlPlane::Get().Object(reconcile::kWorkloads,
                                    {job.key().name_space, job.name() + "-gang"});
}

bool Queues::WaitQueued(const JobUnderTest& job, const std::string& reason) {
  return WaitFor(
      job.key().ToString() + " is queued: " + reason,
      [&] { return job.Reason("Queued") == reason; }, std::chrono::seconds(60),
      [&] { return job.Describe() + "\nworkload: " + Workload(job).dump(1); });
}

std::string Queues::Condition(const json& workload, const std::string& type) {
  if (!workload.is_object() || !workload.contains("status")) return "absent";
  for (const json& condition : workload["status"].value("conditions", json::array())) {
    if (condition["type"] != type) continue;
    return condition["status"].get<std::string>() + "/" + condition["reason"].get<std::string>();
  }
  return "absent";
}

}  // namespace hetero::testing
