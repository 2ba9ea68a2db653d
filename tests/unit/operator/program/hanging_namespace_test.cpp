// Jobs in a namespace whose admission webhook hangs, and one elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "base/fake_clock.h"
#include "operator/program/job_worker.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/project.h"
#include "tests/unit/operator/reconcile/fake_api.h"

namespace hetero::program {
namespace {

using nlohmann::json;
using reconcile::FakeApi;
using std::chrono::seconds;

constexpr int kWorkers = 8;
constexpr char kSpec[] = R"(
{"dataset": {"uri": "synthetic://", "samples": 64, "classes": 10,
             "image": {"height": 8, "width": 8, "channels": 3}},
 "training": {"model": {"name": "mlp"}, "batchSizePerWorker": 4, "maxSteps": 10},
 "roles": [{"name": "head", "type": "Head"},
           {"name": "cpu", "type": "CPUWorker", "replicas": 2},
           {"name": "gpu", "type": "GPUWorker"}]})";

// Pods of the namespace "slow" are not admitted: each job's first create times out when the test
// says so, the later ones never do.
class HangingWebhook : public kube::Transport {
 public:
  explicit HangingWebhook(FakeApi& api) : api_(api) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request, base::Duration timeout,
                                      std::stop_token stop) override {
    if (request.method != "POST" || !absl::StrContains(request.path, "/namespaces/slow/pods")) {
      return api_.Send(request, timeout, std::move(stop));
    }
    const json pod = json::parse(request.body);
    const std::string job = pod["metadata"]["ownerReferences"][0]["name"];
    std::unique_lock lock(mutex_);
    const bool first = ++tries_[job] == 1;
    ++hanging_;
    changed_.wait(lock, std::move(stop), [&] { return first && first_timed_out_; });
    --hanging_;
    return absl::DeadlineExceededError("no answer");
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request&, base::Duration, base::Duration,
                                        const OnLine&, std::stop_token) override {
    return absl::UnimplementedError("no watches");
  }
  std::string host() const override { return "fake"; }
  int hanging() const { return hanging_; }
  void EndFirst() {
    const std::lock_guard lock(mutex_);
    first_timed_out_ = true;
    changed_.notify_all();
  }

 private:
  FakeApi& api_;
  std::atomic<int> hanging_ = 0;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  bool first_timed_out_ = false;
  std::map<std::string, int> tries_;  // by job
};

class HangingNamespace : public ::testing::Test {
 protected:
  HangingNamespace() { identity_ = *reconcile::IssueOperatorIdentity(clock_.WallNow()); }
  ~HangingNamespace() override {
    stop_.request_stop();
    if (ran_.valid()) ran_.get();
  }
  void Run() {
    ran_ = std::async(std::launch::async, [this] {
      worker_.Run({.jobs = &jobs_,
                   .pods = &pods_,
                   .services = &services_,
                   .config_maps = &config_maps_,
                   .network_policies = &network_policies_},
                  identity_, stop_.get_token());
    });
  }
  void CreateJob(const std::string& name_space, const std::string& name) {
    const std::string key = absl::StrCat(name_space, "/", name);
    api_.Put(
        "heterotrainingjobs", key,
        {{"apiVersion", api::kApiVersion}, {"kind", api::kKind}, {"spec", json::parse(kSpec)}});
    jobs_.Put({name_space, name},
              reconcile::ProjectJob(api_.Objects("heterotrainingjobs").at(key), nullptr));
    worker_.Enqueue(key);
  }
  bool AllPodsCreated(const std::string& key) {
    const json job = api_.Objects("heterotrainingjobs").at(key);
    return reconcile::ProjectJob(job, nullptr)->status.Is(api::ConditionType::kPodsCreated);
  }
  double Waiting() {
    return registry_
        .GetGauge("workqueue_depth", "",
                  {{"name", "heterotrainingjob"}, {"controller", "heterotrainingjob"}})
        .value();
  }
  double ActiveWorkers() {
    return registry_
        .GetGauge("controller_runtime_active_workers", "", {{"controller", "heterotrainingjob"}})
        .value();
  }
  // Time moves on, but not while a pass makes way, until `holds`; false after 20 s of real time.
  bool Await(const std::function<bool()>& holds) {
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      if (ActiveWorkers() == transport_.hanging()) clock_.Advance(std::chrono::milliseconds(1));
      std::this_thread::yield();
    }
    return true;
  }

  base::FakeClock clock_;
  metrics::Registry registry_;
  FakeApi api_;
  FakeApi event_api_;
  HangingWebhook transport_{api_};
  OperatorOptions options_ = [] {
    OperatorOptions options;
    options.workers = kWorkers;
    options.parallelism = 1;
    return options;
  }();
  reconcile::OperatorIdentity identity_;
  kube::Client client_{transport_, clock_, registry_, {.qps = 0}};
  kube::Client event_client_{event_api_, clock_, registry_, {.qps = 0}};
  kube::Store<plan::ObservedJob> jobs_;
  kube::Store<plan::ObservedPod> pods_{reconcile::OwnerOf<plan::ObservedPod>};
  kube::Store<plan::ObservedObject> services_{reconcile::OwnerOf<plan::ObservedObject>};
  kube::Store<plan::ObservedObject> config_maps_{reconcile::OwnerOf<plan::ObservedObject>};
  kube::Store<plan::ObservedObject> network_policies_{reconcile::OwnerOf<plan::ObservedObject>};
  std::stop_source stop_;
  std::future<void> ran_;
  JobWorker worker_{options_, client_, event_client_, clock_, registry_};
};

// Its jobs held all workers, one timeout after another.
TEST_F(HangingNamespace, HoldsHalfOfTheWorkersAndNotTheOthersJobs) {
  Run();
  for (int i = 0; i < kWorkers; ++i) CreateJob("slow", absl::StrCat("job-", i));
  ASSERT_TRUE(
      Await([&] { return transport_.hanging() == kWorkers / 2 && Waiting() == kWorkers / 2; }));
  CreateJob("fast", "vit");
  EXPECT_TRUE(Await([&] { return AllPodsCreated("fast/vit"); }));
  EXPECT_EQ(transport_.hanging(), kWorkers / 2);
  // Each pass waits for one timeout and gives up.
  clock_.Advance(seconds(30));
  transport_.EndFirst();
  ASSERT_TRUE(
      Await([&] { return transport_.hanging() == kWorkers / 2 && Waiting() == kWorkers / 2; }));
  CreateJob("fast", "bert");
  EXPECT_TRUE(Await([&] { return AllPodsCreated("fast/bert"); }));
}

}  // namespace
}  // namespace hetero::program
