#include <gtest/gtest.h>
#include <signal.h>

#include <deque>
#include <fstream>
#include <map>
#include <thread>

#include "tests/integration/operator/support/world.h"

// The same job under a hostile network and a mortal operator: always the same end, no pod twice,
// nothing left behind.
namespace hetero::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One operator that sees one namespace through a proxy of its own, so that many faults can be tried
// side by side.
struct Lane {
  explicit Lane(const std::string& prefix)
      : space(prefix),
        proxy(ControlPlane::Get().ProxyOptions()),
        process({.server = proxy.url(),
                 .arguments = {"--watch-namespaces", space.name(), "--no-leader-elect"},
                 .start = false}) {}

  TestNamespace space;
  ApiProxy proxy;
  OperatorProcess process;
};

// A life with one failure in it: GPU worker 0 dies once, at step 5.
json EventfulJob(const std::string& name) {
  return MakeJob(name,
                 {{"steps", 12},
                  {"stepMillis", 20},
                  {"killMember", "gpu-0"},
                  {"killAtStep", 5},
                  {"result", {{"loss", 0.25}}}},
                 2, 2);
}

// What every run of EventfulJob must come to, whatever happened on the way.
void ExpectTheEnd(Lane& lane, JobUnderTest& job, seconds deadline = seconds(120)) {
  ASSERT_TRUE(job.WaitIs("Succeeded", deadline)) << lane.process.log();
  ASSERT_TRUE(job.WaitGone()) << lane.process.log();
  const json status = job.Status();
  EXPECT_EQ(status.value("restarts", 0), 1) << status.dump(1);
  EXPECT_EQ(status.value("attempt", 0), 1) << status.dump(1);
  EXPECT_EQ(status.value("firstFailure", json::object()).value("pod", ""), job.name() + "-gpu-0");
  EXPECT_EQ(status.value("result", json::object()).value("loss", 0.0), 0.25);
  EXPECT_TRUE(status.value("uncounted", json::array()).empty());
  // No pod twice: each name was accepted once, but for the one that died.
  std::map<std::string, int> accepted;
  for (const RecordedWrite& write : lane.proxy.writes()) {
    if (write.request.method != "POST" || write.status != 201) continue;
    const json body = json::parse(write.request.body, nullptr, false);
    if (body.value("kind", "") == "Pod") ++accepted[body["metadata"]["name"].get<std::string>()];
  }
  for (const auto& [name, count] : accepted) {
    EXPECT_LE(count, name.ends_with("-gpu-0") ? 2 : 1) << name;
  }
}

class Fault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { World::Get(); }
  ControlPlane& plane_ = ControlPlane::Get();
};

TEST_F(Fault, KilledAtEveryWrite) {
  int writes;
  {
    Lane calm("calm");
    calm.process.Start();
    JobUnderTest job(calm.space.name(), EventfulJob("job"));
    ExpectTheEnd(calm, job);
    std::this_thread::sleep_for(seconds(1));
    writes = static_cast<int>(calm.proxy.writes().size());
  }
  std::printf("an undisturbed life with one failure takes %d writes\n", writes);
  ASSERT_GE(writes, 15);
  ASSERT_LE(writes, 40);
  // Killed before the n-th write reaches the server, and after it was carried out but before the
  // reply arrives.
  struct Case {
    int write;
    bool carried_out;
  };
  std::deque<Case> cases;
  for (int n = 1; n <= writes; ++n) {
    cases.push_back({n, false});
    cases.push_back({n, true});
  }
  std::mutex mutex;  // guards cases
  auto run_lane = [&] {
    while (true) {
      Case one;
      {
        std::lock_guard lock(mutex);
        if (cases.empty()) return;
        one = cases.front();
        cases.pop_front();
      }
      SCOPED_TRACE("write " + std::to_string(one.write) + (one.carried_out ? " done" : " lost"));
      Lane lane("kill");
      std::atomic<int> count = 0;
      std::atomic<bool> killed = false;
      auto kill_now = [&] {
        if (!killed.exchange(true)) kill(lane.process.pid(), SIGKILL);
      };
      lane.proxy.SetRule([&](const ProxiedRequest& request) -> ProxyAction {
        if (!request.write() || killed) return {};
        if (++count != one.write) return {};
        if (one.carried_out) return {.kind = ProxyAction::Kind::kLoseReply};
        kill_now();
        return {.kind = ProxyAction::Kind::kLose};
      });
      lane.proxy.SetAfterWrite([&](const ProxiedRequest&, int) {
        if (one.carried_out && count >= one.write) kill_now();
      });
      lane.process.Start();
      JobUnderTest job(lane.space.name(), EventfulJob("job"));
      // The last writes are events and progress, whose number differs by one or two from life to
      // life.
      WaitFor(
          "the operator was killed or had no such write to make",
          [&] {
            return !lane.process.running() || (job.Is("Succeeded") && job.Children().empty());
          },
          seconds(60), [&] { return job.Describe(); });
      if (lane.process.running()) kill_now();
      lane.process.Start();
      ExpectTheEnd(lane, job);
    }
  };
  std::vector<std::thread> lanes;
  for (int i = 0; i < 6; ++i) lanes.emplace_back(run_lane);
  for (std::thread& lane : lanes) lane.join();
}

TEST_F(Fault, DownForTheWholeLife) {
  Lane lane("late");
  lane.process.Start();
  JobUnderTest job(lane.space.name(), MakeJob("job", {{"steps", 40}, {"stepMillis", 50}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  lane.process.Kill();
  WaitFor(
      "the head's pod ended",
      [&] {
        const json pod = job.Pod("head", 0);
        return pod.is_object() && pod["status"]["phase"] == "Succeeded";
      },
      seconds(60), [&] { return job.Describe(); });
  lane.process.Start();
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  EXPECT_EQ(job.Status()["result"]["steps"], 40) << job.Status().dump(1);
  EXPECT_TRUE(job.WaitGone());
}

// A rule that disturbs what goes through the proxy, for as long as `active`.
struct Disturbance {
  const char* name;
  std::function<ApiProxy::Rule(std::shared_ptr<std::atomic<bool>> active)> rule;
  bool cut_watches = false;
  seconds lasts = seconds(8);
};

std::string StatusBody(int code, const std::string& reason) {
  return json({{"kind", "Status"},
               {"apiVersion", "v1"},
               {"status", "Failure"},
               {"code", code},
               {"reason", reason},
               {"message", "from the proxy"}})
      .dump();
}

std::vector<Disturbance> Disturbances() {
  using Kind = ProxyAction::Kind;
  return {
      {"watches cut every second for a minute", [](auto) { return nullptr; }, true, seconds(60)},
      {"410 on two of three watches",
       [](auto active) {
         auto count = std::make_shared<std::atomic<int>>(0);
         return [=](const ProxiedRequest& request) -> ProxyAction {
           if (!*active || !request.watch() || ++*count % 3 == 0) return {};
           if (*count % 2) {
             return {.kind = Kind::kReply, .status = 410, .body = StatusBody(410, "Expired")};
           }
           return {.kind = Kind::kReply,
                   .status = 200,
                   .body = json({{"type", "ERROR"},
                                 {"object", json::parse(StatusBody(410, "Expired"))}})
                               .dump() +
                           "\n"};
         };
       },
       true},
      {"429 with Retry-After on every second request",
       [](auto active) {
         auto count = std::make_shared<std::atomic<int>>(0);
         return [=](const ProxiedRequest&) -> ProxyAction {
           if (!*active || ++*count % 2) return {};
           return {.kind = Kind::kReply,
                   .status = 429,
                   .extra_headers = "Retry-After: 1\r\n",
                   .body = StatusBody(429, "TooManyRequests")};
         };
       }},
      {"bursts of 500",
       [](auto active) {
         auto count = std::make_shared<std::atomic<int>>(0);
         return [=](const ProxiedRequest&) -> ProxyAction {
           if (!*active || (++*count / 10) % 2) return {};
           return {.kind = Kind::kReply, .status = 500, .body = StatusBody(500, "InternalError")};
         };
       }},
      {"every fifth connection cut, request or reply",
       [](auto active) {
         auto count = std::make_shared<std::atomic<int>>(0);
         return [=](const ProxiedRequest& request) -> ProxyAction {
           if (!*active || ++*count % 5) return {};
           return {.kind = request.write() && *count % 2 ? Kind::kLoseReply : Kind::kLose};
         };
       }},
  };
}

TEST_F(Fault, HostileNetworkNeverChangesTheEnd) {
  std::vector<std::thread> threads;
  for (const Disturbance& disturbance : Disturbances()) {
    threads.emplace_back([disturbance] {
      SCOPED_TRACE(disturbance.name);
      Lane lane("storm");
      auto active = std::make_shared<std::atomic<bool>>(true);
      lane.proxy.SetRule(disturbance.rule(active));
      lane.process.Start();
      const auto end = std::chrono::steady_clock::now() + disturbance.lasts;
      std::vector<std::unique_ptr<JobUnderTest>> jobs;
      int cut = 0;
      while (std::chrono::steady_clock::now() < end || jobs.size() < 2) {
        if (jobs.empty() || (jobs.size() < 12 && jobs.back()->Is("Running"))) {
          const std::string name = "job-" + std::to_string(jobs.size());
          jobs.push_back(std::make_unique<JobUnderTest>(lane.space.name(), EventfulJob(name)));
        }
        std::this_thread::sleep_for(seconds(1));
        if (disturbance.cut_watches) cut += lane.proxy.CutWatches();
        if (std::chrono::steady_clock::now() > end + seconds(60)) break;
      }
      *active = false;
      if (disturbance.cut_watches) {
        EXPECT_GE(cut, 5);
      }
      for (auto& job : jobs) ExpectTheEnd(lane, *job);
      EXPECT_TRUE(lane.process.running()) << "it never crashed";
      std::printf("%s: %zu jobs, %d watches cut\n", disturbance.name, jobs.size(), cut);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A list from the past: pods that are long gone, a job that was still running. The operator must
// not act on it.
TEST_F(Fault, StaleListsDoNoHarm) {
  Lane lane("stale");
  lane.process.Start();
  JobUnderTest job(lane.space.name(), EventfulJob("job"));
  ASSERT_TRUE(job.WaitIs("Running"));
  std::map<std::string, std::string> old;  // by path
  const std::string base = "/namespaces/" + lane.space.name() + "/";
  for (const std::string& path :
       {"/api/v1" + base + "pods",
        "/apis/training.hetero.dev/v1alpha1" + base + "heterotrainingjobs",
        "/api/v1" + base + "services", "/api/v1" + base + "configmaps"}) {
    old[path] = plane_.MustKubectl({"get", "--raw", path});
  }
  ASSERT_TRUE(job.WaitIs("Succeeded"));
  ASSERT_TRUE(job.WaitGone());
  lane.proxy.ForgetWrites();
  const auto until = std::chrono::steady_clock::now() + seconds(4);
  std::atomic<int> served = 0;
  lane.proxy.SetRule([&](const ProxiedRequest& request) -> ProxyAction {
    if (request.method != "GET" || request.watch() || std::chrono::steady_clock::now() > until)
      return {};
    auto it = old.find(request.path.substr(0, request.path.find('?')));
    if (it == old.end()) return {};
    ++served;
    return {.kind = ProxyAction::Kind::kReply, .status = 200, .body = it->second};
  });
  lane.process.Kill();
  lane.process.Start();  // lists everything, and is told the past
  std::this_thread::sleep_for(seconds(3));
  lane.proxy.CutWatches();
  std::this_thread::sleep_for(seconds(5));
  EXPECT_GE(served, 4);
  EXPECT_TRUE(job.Is("Succeeded"));
  EXPECT_TRUE(job.WaitGone());
  for (const RecordedWrite& write : lane.proxy.writes()) {
    EXPECT_FALSE(write.request.method == "POST" && write.status == 201 &&
                 write.request.path.find("/events") == std::string::npos)
        << write.request.path << " created from a stale list";
  }
}

TEST_F(Fault, ApiServerAndEtcdRestart) {
  for (const char* component : {"kube-apiserver", "etcd"}) {
    SCOPED_TRACE(component);
    Lane lane("restart");
    lane.process.Start();
    std::deque<JobUnderTest> jobs;
    jobs.emplace_back(lane.space.name(), EventfulJob("before"));
    jobs.emplace_back(lane.space.name(), MakeJob("during",
                                                 {{"steps", 100},
                                                  {"stepMillis", 50},
                                                  {"killMember", "gpu-0"},
                                                  {"killAtStep", 60},
                                                  {"result", {{"loss", 0.25}}}},
                                                 2, 2));
    ASSERT_TRUE(jobs[1].WaitIs("Running"));
    plane_.Component("kill", component);
    std::this_thread::sleep_for(seconds(2));
    plane_.Component("start", component);
    WaitFor("the API answers again", [&] {
      return plane_.Kubectl({"get", "--raw", "/readyz"}).exit_code == 0;
    });
    jobs.emplace_back(lane.space.name(), EventfulJob("after"));
    for (JobUnderTest& job : jobs) ExpectTheEnd(lane, job);
    EXPECT_TRUE(lane.process.running());
  }
}

TEST_F(Fault, TwoOperatorsOneLeader) {
  TestNamespace space("lead");
  ApiProxy proxies[2] = {ApiProxy(plane_.ProxyOptions()), ApiProxy(plane_.ProxyOptions())};
  std::deque<OperatorProcess> operators;
  for (ApiProxy& proxy : proxies) {
    operators.emplace_back(OperatorProcess::Options{
        .server = proxy.url(),
        .arguments = {"--watch-namespaces", space.name(), "--leader-elect"}});
  }
  for (OperatorProcess& one : operators) {
    WaitFor("both are ready, leader or not", [&] { return one.ready(); });
  }
  const std::string kMaster = R"(leader_election_master_status{name="hetero-operator"})";
  auto leader = [&] {
    for (int i = 0; i < 2; ++i) {
      if (operators[i].running() && operators[i].Metric(kMaster) == 1) return i;
    }
    return -1;
  };
  ASSERT_TRUE(WaitFor("one leads", [&] { return leader() >= 0; }));
  const int first = leader(), second = 1 - first;
  EXPECT_EQ(operators[second].Metric(kMaster), 0);
  JobUnderTest one(space.name(), MakeJob("one", {{"steps", 100000}, {"stepMillis", 20}}));
  ASSERT_TRUE(one.WaitIs("Running"));
  operators[first].Kill();
  const auto died = std::chrono::steady_clock::now();
  JobUnderTest two(space.name(), MakeJob("two", {{"steps", 10}}));
  ASSERT_TRUE(WaitFor(
      "the other leads", [&] { return leader() == second; }, seconds(20)));
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - died).count();
  std::printf("the other operator leads %.1f s after the first was killed\n", took);
  EXPECT_LE(took, 15 + 2 * 2 + 1) << "lease duration, two retries";
  ASSERT_TRUE(two.WaitIs("Succeeded"));
  // Audit: but for the lease, nobody writes while the other leads.
  auto spans = [&](int i) {
    std::vector<std::chrono::steady_clock::time_point> times;
    for (const RecordedWrite& write : proxies[i].writes()) {
      if (write.request.path.find("/leases") == std::string::npos &&
          write.request.path.find("/events") == std::string::npos &&
          write.request.path.find("/secrets") == std::string::npos) {
        times.push_back(write.time);
      }
    }
    return times;
  };
  const auto of_first = spans(first), of_second = spans(second);
  ASSERT_FALSE(of_first.empty());
  ASSERT_FALSE(of_second.empty());
  EXPECT_LT(of_first.back(), of_second.front()) << "never two writers";
  // A clean end releases the lease: the next one need not wait for it to run out.
  operators[first].Start();
  WaitFor("the first is back", [&] { return operators[first].ready(); });
  EXPECT_EQ(operators[second].Stop(), 0);
  const auto released = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitFor("the first leads again", [&] { return leader() == first; }));
  EXPECT_LE(std::chrono::steady_clock::now() - released, seconds(6));
  EXPECT_NE(operators[second].log().find("released the lease"), std::string::npos);
  // A leader that was frozen for longer than its lease must not go on as one.
  kill(operators[first].pid(), SIGSTOP);
  operators[second].Start();
  ASSERT_TRUE(WaitFor(
      "the lease of a frozen leader runs out",
      [&] { return operators[second].Metric(kMaster) == 1; }, seconds(25)));
  kill(operators[first].pid(), SIGCONT);
  WaitFor(
      "it ends when it wakes", [&] { return !operators[first].running(); }, seconds(15));
}

}  // namespace
}  // namespace hetero::testing
