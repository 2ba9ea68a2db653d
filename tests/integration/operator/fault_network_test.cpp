// Between the operator and the API server everything goes wrong that may.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "tests/integration/operator/fault_fixture.h"

namespace hetero::testing {
namespace {

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

}  // namespace
}  // namespace hetero::testing
