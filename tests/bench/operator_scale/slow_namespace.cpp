#include "tests/bench/operator_scale/slow_namespace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

#include "tests/bench/operator_scale/slow_webhook.h"
#include "tests/bench/operator_scale/small_jobs.h"

namespace hetero::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ControlPlane;
using testing::ProxiedRequest;
using testing::ProxyAction;

constexpr char kSlow[] = "slow";
constexpr milliseconds kApiDelay{100};
constexpr milliseconds kWebhookDelay{3000};
constexpr milliseconds kBetweenOthers{500};
constexpr seconds kRoundPatience{600};

bool Concerns(const ProxiedRequest& request) {
  return request.path.find(std::string("/namespaces/") + kSlow + "/") != std::string::npos;
}

ProxyAction SlowDown(const ProxiedRequest& request, std::atomic<int64_t>& calls) {
  if (!Concerns(request)) return {};
  std::this_thread::sleep_for(kApiDelay);
  if (calls++ % 3 != 0) return {};
  return {.kind = ProxyAction::Kind::kReply,
          .status = 429,
          .extra_headers = "Retry-After: 1\r\n",
          .body = R"({"apiVersion":"v1","kind":"Status","status":"Failure","code":429,)"
                  R"("reason":"TooManyRequests","message":"too many requests"})"};
}

// Applies `jobs` of the namespace, and then one after another of the others; seconds until these
// had their pods.
std::vector<double> Round(const ClusterSeen& seen, const SlowNamespaceOptions& options, int jobs,
                          const char* what) {
  SmallJobs slow(seen, {kSlow});
  SmallJobs others(seen, {"other-0", "other-1", "other-2", "other-3"});
  for (int i = 0; i < jobs; ++i) slow.Apply();
  const auto begin = Clock::now();
  for (int i = 0; i < options.others; ++i) {
    others.Apply();
    std::this_thread::sleep_until(begin + (i + 1) * kBetweenOthers);
  }
  others.Await(kRoundPatience);
  std::printf("%s: %zu of %d jobs of the namespace had their pods when the others had\n", what,
              slow.SecondsToPods().size(), jobs);
  others.Print(what);
  if (jobs > 0) {
    slow.Await(kRoundPatience);
    slow.Print(what);
  }
  for (const std::string name_space : {kSlow, "other-0", "other-1", "other-2", "other-3"}) {
    const absl::Status deleted =
        ControlPlane::Get().client().DeleteCollection(testing::kJobs, name_space, "", {});
    EXPECT_TRUE(deleted.ok()) << deleted.message();
  }
  testing::WaitFor("all pods are gone",
                   [] { return ControlPlane::Get().Objects(kube::kPods, "").empty(); });
  return others.SecondsToPods();
}

// Those who have a quick neighbour share the API server and the operator's budget of calls with it,
// as they do with any other.
int Compare(const std::vector<double>& alone, const std::vector<double>& quick,
            const std::vector<double>& slow, const SlowNamespaceOptions& options) {
  const double ratio = Median(slow) / Median(quick);
  const double worst = Largest(slow) / Largest(quick);
  const bool all = slow.size() == static_cast<size_t>(options.others);
  std::printf("beside nobody %.2f s, beside the quick one %.2f s, beside the slow one %.2f s\n",
              Median(alone), Median(quick), Median(slow));
  std::printf(
      "other namespaces' jobs: %.2f times as long (median), %.2f (the slowest); the target "
      "is at most %.1f: %s\n",
      ratio, worst, options.most, all && ratio <= options.most ? "kept" : "MISSED");
  return all && ratio <= options.most ? 0 : 1;
}

void MakeAllNamespaces() {
  testing::World::Get();
  MakeNamespaces({kSlow, "other-0", "other-1", "other-2", "other-3"});
}

}  // namespace

int RunSlowApi(const SlowNamespaceOptions& options) {
  MakeAllNamespaces();
  testing::ApiProxy proxy(ControlPlane::Get().ProxyOptions());
  testing::OperatorProcess process(OperatorOptions({}, proxy.url()));
  testing::WaitFor("the operator is ready", [&] { return process.ready(); });
  const ClusterSeen seen;
  const std::vector<double> alone = Round(seen, options, 0, "nobody beside them");
  const std::vector<double> quick = Round(seen, options, options.jobs, "quick API server");
  std::atomic<int64_t> calls = 0;
  proxy.SetRule([&calls](const ProxiedRequest& request) { return SlowDown(request, calls); });
  const std::vector<double> slow =
      Round(seen, options, options.jobs, "API server slow for one namespace");
  return Compare(alone, quick, slow, options);
}

int RunSlowWebhook(const SlowNamespaceOptions& options) {
  MakeAllNamespaces();
  testing::OperatorProcess process(OperatorOptions({}));
  testing::WaitFor("the operator is ready", [&] { return process.ready(); });
  const ClusterSeen seen;
  SlowWebhook webhook(kSlow);
  std::this_thread::sleep_for(seconds(3));  // until the API server has heard of it
  const std::vector<double> alone = Round(seen, options, 0, "nobody beside them");
  const std::vector<double> quick = Round(seen, options, options.jobs, "quick webhook");
  std::printf("%lld calls of the webhook\n", static_cast<long long>(webhook.calls()));
  webhook.SetDelay(kWebhookDelay);
  const std::vector<double> slow =
      Round(seen, options, options.jobs, "webhook slow for one namespace");
  return Compare(alone, quick, slow, options);
}

}  // namespace hetero::bench
