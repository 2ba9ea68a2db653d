// Servers that restart, two operators that may not both lead, and a kubelet that is late.
#include <gtest/gtest.h>
#include <signal.h>

#include <deque>
#include <fstream>
#include <thread>

#include "tests/integration/operator/fault_fixture.h"

namespace hetero::testing {
namespace {

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

// What the test of killed operators counts on: a pod of the same name is never taken for the one
// that was meant, however late the fake kubelet learns of its end.
TEST_F(Fault, ALateKubeletLeavesTheNextPodOfTheNameAlone) {
  TestNamespace space("late-kubelet");
  kube::Client& client = plane_.client();
  constexpr int kPods = 10;
  const auto key = [&](int i) { return kube::ObjectKey{space.name(), "pod-" + std::to_string(i)}; };
  const auto create = [&](int i) {
    const auto pod = client.Create(
        kube::kPods, space.name(),
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"name", key(i).name}}},
         {"spec",
          {{"nodeName", "node-1"},
           {"containers", json::array({{{"name", "runtime"}, {"image", "none"}}})}}}});
    EXPECT_TRUE(pod.ok()) << pod.status();
    return pod.ok() ? (*pod)["metadata"]["uid"].get<std::string>() : "";
  };
  // Those that are there.
  const auto await_all_running = [&] {
    WaitFor("the pods run", [&] {
      for (int i = 0; i < kPods; ++i) {
        const json pod = plane_.Object(kube::kPods, key(i));
        if (pod.is_object() && pod["status"].value("phase", "") != "Running") return false;
      }
      return true;
    });
  };
  for (int i = 0; i < kPods; ++i) create(i);
  await_all_running();
  plane_.Component("freeze", "kwok");
  std::vector<std::string> uids;
  for (int i = 0; i < kPods; ++i) {
    EXPECT_TRUE(client.Delete(kube::kPods, key(i), {}).ok());  // to be carried out by the kubelet
    EXPECT_TRUE(client.Delete(kube::kPods, key(i), {.grace_period_seconds = 0}).ok());
    uids.push_back(create(i));
  }
  plane_.Component("thaw", "kwok");
  await_all_running();
  for (int i = 0; i < kPods; ++i) {
    const json pod = plane_.Object(kube::kPods, key(i));
    ASSERT_TRUE(pod.is_object()) << key(i).name << " is gone";
    EXPECT_EQ(pod["metadata"]["uid"], uids[i]);
  }
}

}  // namespace
}  // namespace hetero::testing
