// Two hundred jobs of four pods in a queue that has room for five: all finish, in the order of
// their priorities, never is more asked for than the quota, and what the operator writes is counted
// from the API server's audit log (HETERO_CLUSTER_AUDIT).
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "tests/bench/operator_scale/recording.h"
#include "tests/integration/operator/queue_fixture.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;

constexpr int kQuota = 20;         // CPUs; each pod asks for one
constexpr int kJobCount = 200;     // of four pods each
constexpr int kEarly = 5;          // of them, which run while the others join the queue
constexpr int kElasticOf = 4;      // every fourth has a CPU worker that is lent
constexpr int kWrites = 40;        // of a job of four pods, at most
constexpr int kElasticWrites = 6;  // for each elastic Workload
constexpr const char* kPriorities[] = {"high", "", "batch"};

int PriorityOf(const std::string& name) { return name == "high" ? 1000 : name == "batch" ? -5 : 0; }

// Every change of one kind in a namespace, from the API server's own watch.
class Changes {
 public:
  using OnChange = std::function<void(const std::string& type, const json& object)>;
  Changes(const std::string& path, OnChange on_change)
      : thread_([path, on_change = std::move(on_change)](std::stop_token stop) {
          const auto ended = ControlPlane::Get().transport().Stream(
              {.path = path + "?watch=1&timeoutSeconds=7200"}, std::chrono::hours(2),
              std::chrono::hours(2),
              [&](std::string_view line) {
                const json event = json::parse(line, nullptr, false);
                EXPECT_NE(event.value("type", ""), "ERROR") << line;
                on_change(event.value("type", ""), event["object"]);
                return true;
              },
              stop);
          EXPECT_TRUE(stop.stop_requested()) << "the watch has ended: " << ended.status().message();
        }) {}

 private:
  std::jthread thread_;
};

// What all pods that have not ended ask for, at every change.
class Requests {
 public:
  explicit Requests(const std::string& name_space)
      : changes_("/api/v1/namespaces/" + name_space + "/pods",
                 [this](const std::string& type, const json& pod) { See(type, pod); }) {}
  int most() const { return Locked(most_); }
  int seen() const { return Locked(seen_); }

 private:
  void See(const std::string& type, const json& pod) {
    const std::string phase = pod["status"].value("phase", "");
    int cpus = 0;
    for (const json& container : pod["spec"]["containers"]) {
      cpus += std::stoi(container["resources"]["requests"]["cpu"].get<std::string>());
    }
    const std::lock_guard lock(mutex_);
    ++seen_;
    const std::string uid = pod["metadata"]["uid"];
    if (type == "DELETED" || phase == "Succeeded" || phase == "Failed") {
      cpus_.erase(uid);
    } else {
      cpus_[uid] = cpus;
    }
    int now = 0;
    for (const auto& [unused, asked] : cpus_) now += asked;
    most_ = std::max(most_, now);
  }
  int Locked(const int& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;  // guards all below but changes_
  std::map<std::string, int> cpus_;
  int most_ = 0, seen_ = 0;
  Changes changes_;
};

// Gangs in the order in which they got their quota, and how often Workloads were preempted.
class Admissions {
 public:
  explicit Admissions(const std::string& name_space)
      : changes_("/apis/kueue.x-k8s.io/v1beta2/namespaces/" + name_space + "/workloads",
                 [this](const std::string&, const json& workload) { See(workload); }) {}
  std::vector<std::pair<std::string, int>> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  size_t lent() const {
    const std::lock_guard lock(mutex_);
    return lent_.size();
  }
  size_t preempted() const {
    const std::lock_guard lock(mutex_);
    return preempted_.size();
  }

 private:
  void See(const json& workload) {
    const std::string name = workload["metadata"]["name"];
    const std::string uid = workload["metadata"]["uid"];
    const std::lock_guard lock(mutex_);
    for (const json& condition :
         workload.value("status", json::object()).value("conditions", json::array())) {
      if (condition["status"] != "True") continue;
      if (condition["type"] == "Preempted") {
        preempted_.insert(uid + condition["lastTransitionTime"].get<std::string>());
      }
      if (condition["type"] != "QuotaReserved") continue;
      if (!name.ends_with("-gang")) {
        lent_.insert(uid);
      } else if (reserved_.insert(uid).second) {
        order_.emplace_back(name, workload["spec"].value("priority", 0));
      }
    }
  }

  mutable std::mutex mutex_;  // guards all below but changes_
  std::set<std::string> reserved_, lent_, preempted_;
  std::vector<std::pair<std::string, int>> order_;
  Changes changes_;
};

class QueuesAtScale : public Queues {
 protected:
  static json Job(int index) {
    char name[16];
    std::snprintf(name, sizeof(name), "job-%03d", index);
    const bool elastic = index % kElasticOf == 0;
    json job = elastic ? Elastic(name, 2) : Queued(name, 2);
    const bool early = index < kEarly * kElasticOf && elastic;
    const std::string priority_class = early ? "high" : kPriorities[index % 3];
    if (!priority_class.empty()) {
      job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority_class;
    }
    for (const auto& [role, price] :
         {std::pair{"head", "0.1"}, std::pair{"cpu", "0.68"}, std::pair{"gpu", "3.06"}}) {
      RoleOf(job, role)["pricePerHour"] = price;  // what it costs is written, too
    }
    const json script =
        early ? json{{"steps", 20}, {"holdAtStep", 10}} : json{{"steps", 10}, {"stepMillis", 20}};
    job["metadata"]["annotations"]["fake.hetero.dev/script"] = script.dump();
    return job;
  }
  static bool IsEarly(int index) { return index % kElasticOf == 0 && index < kEarly * kElasticOf; }
  void Create(const std::string& name_space, json job) {
    job["metadata"]["namespace"] = name_space;
    const auto created = plane_.client().Create(kJobs, name_space, job);
    ASSERT_TRUE(created.ok()) << created.status().message();
  }
  void Stop(const TeamQueue& queue, const std::string& policy) {
    plane_.Patch(kClusterQueues, {"", queue.space()}, {{"spec", {{"stopPolicy", policy}}}});
    WaitFor("the queue is " + policy, [&] {
      const json object = plane_.Object(kClusterQueues, {"", queue.space()});
      return Condition(object, "Active").starts_with(policy == "None" ? "True" : "False");
    });
  }
  int Succeeded(const std::string& name_space) {
    int succeeded = 0;
    for (const json& job : plane_.Objects(kJobs, name_space)) {
      EXPECT_FALSE(Condition(job, "Failed").starts_with("True")) << job["metadata"]["name"];
      succeeded += Condition(job, "Succeeded").starts_with("True");
    }
    return succeeded;
  }
};

// By kind of write, and by job.
struct Writes {
  std::map<std::string, int> kinds;
  std::map<std::string, int> of_job, elastic_of_job;  // Workloads of lent CPU workers
  int most = 0, most_beside_elastic = 0;
};

std::string KindOf(const bench::Write& write) {
  std::string path = write.uri.substr(0, write.uri.find('?'));
  const size_t at = path.find("/namespaces/");
  path = at == std::string::npos ? path : path.substr(path.find('/', at + 12) + 1);
  const size_t name = path.find('/');
  std::string kind = path.substr(0, name);
  if (path.ends_with("/status")) kind += "/status";
  return write.method + " " + kind;
}

Writes Count(const bench::Recording& recording) {
  Writes writes;
  for (const bench::Write& write : recording.writes) {
    const std::string kind = KindOf(write);
    ++writes.kinds[kind];
    ++writes.of_job[write.job];
    if (kind != "POST workloads") continue;
    const std::string name = json::parse(write.body)["metadata"]["name"];
    writes.elastic_of_job[write.job] += !name.ends_with("-gang");
  }
  for (const auto& [job, count] : writes.of_job) {
    writes.most = std::max(writes.most, count);
    writes.most_beside_elastic =
        std::max(writes.most_beside_elastic, count - kElasticWrites * writes.elastic_of_job[job]);
  }
  return writes;
}

TEST_F(QueuesAtScale, TwoHundredJobsShareAQuotaOfTwenty) {
  const json batch = {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                      {"kind", "WorkloadPriorityClass"},
                      {"metadata", {{"name", "batch"}}},
                      {"value", PriorityOf("batch")}};
  plane_.MustKubectl({"apply", "-f", "-"}, batch.dump());
  TeamQueue queue("scale", kQuota, {{"queueingStrategy", "StrictFIFO"}});
  const std::string& space = queue.space();
  Requests requests(space);
  Admissions admissions(space);
  const auto begin = std::chrono::steady_clock::now();

  for (int i = 0; i < kJobCount; ++i) {
    if (IsEarly(i)) Create(space, Job(i));
  }
  ASSERT_TRUE(queue.WaitUsage("20")) << "five gangs of three, and a lent CPU worker for each";
  Stop(queue, "Hold");
  for (int i = 0; i < kJobCount; ++i) {
    if (!IsEarly(i)) Create(space, Job(i));
  }
  WaitFor(
      "all others are queued",
      [&] { return plane_.Objects(reconcile::kWorkloads, space).size() == kJobCount + kEarly; },
      seconds(600));
  Stop(queue, "None");
  WaitFor("what was lent is taken back", [&] { return admissions.preempted() >= 4; });
  for (int i = 0; i < kJobCount; ++i) {
    if (!IsEarly(i)) continue;
    plane_.Annotate(kJobs, {space, Job(i)["metadata"]["name"]}, "fake.hetero.dev/continue", "yes");
  }
  int before = 0;
  ASSERT_TRUE(WaitFor(
      "all jobs succeed",
      [&] {
        std::this_thread::sleep_for(seconds(2));
        const int succeeded = Succeeded(space);
        if (succeeded / 20 != before / 20) std::printf("%d jobs have succeeded\n", succeeded);
        before = succeeded;
        return succeeded == kJobCount || !operator_->running();
      },
      seconds(3000)));
  ASSERT_TRUE(operator_->running()) << operator_->log();
  ASSERT_TRUE(queue.WaitUsage("0"));
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const auto order = admissions.order();
  ASSERT_EQ(order.size(), static_cast<size_t>(kJobCount));
  int late = 0;  // admitted after one of lower priority
  int lowest = order[kEarly].second;
  for (size_t i = kEarly; i < order.size(); ++i) {
    late += order[i].second > lowest;
    lowest = std::min(lowest, order[i].second);
  }
  std::printf("%d jobs of four pods through a quota of %d in %.0f s\n", kJobCount, kQuota, took);
  std::printf("requests of pods that have not ended: at most %d, in %d changes\n", requests.most(),
              requests.seen());
  std::printf(
      "CPU workers lent: %zu; taken back: %zu; gangs admitted after one of less priority: %d\n",
      admissions.lent(), admissions.preempted(), late);
  EXPECT_EQ(requests.most(), kQuota) << "never more, and the quota was used";
  // Kueue writes its decisions side by side: two that follow upon each other may change places.
  EXPECT_LE(late, 2);

  const char* const folder = std::getenv("HETERO_TEST_CLUSTER_DIR");
  ASSERT_NE(folder, nullptr);
  const bench::Recording recording =
      bench::ReadAuditLog(std::string(folder) + "/audit.log",
                          "system:serviceaccount:hetero-system:" + World::Get().account());
  const Writes writes = Count(recording);
  ASSERT_EQ(writes.of_job.size(), static_cast<size_t>(kJobCount))
      << "HETERO_CLUSTER_AUDIT=1 is needed";
  for (const auto& [kind, count] : writes.kinds) {
    std::printf("  %-40s %6d  %5.2f per job\n", kind.c_str(), count,
                static_cast<double>(count) / kJobCount);
  }
  std::printf("writes: %.1f per job, at most %d; beside %d for each elastic Workload at most %d\n",
              static_cast<double>(recording.writes.size()) / kJobCount, writes.most, kElasticWrites,
              writes.most_beside_elastic);
  EXPECT_LE(writes.most_beside_elastic, kWrites);
}

}  // namespace
}  // namespace hetero::testing
