#include "tests/bench/operator_scale/big_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "tests/bench/operator_scale/small_jobs.h"

namespace hetero::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ControlPlane;
using testing::json;

constexpr char kNamespace[] = "big";
constexpr char kName[] = "big";
constexpr char kKey[] = "big/big";
constexpr seconds kBigPatience{1500};
constexpr seconds kBetweenSmallJobs{5};
constexpr seconds kSteady{20};

class BigJob {
 public:
  explicit BigJob(const BigJobOptions& options)
      : options_(options), pods_(options.gpu + options.cpu + 1) {}

  int Run();

 private:
  json Manifest() const;
  bool Start();
  bool Recover(const std::string& role, int count);
  bool StartAnew();
  bool End();
  void Steady();
  void PrintMemory(const char* when);

  const BigJobOptions options_;
  const int pods_;
  std::unique_ptr<testing::OperatorProcess> process_;
  std::unique_ptr<ClusterSeen> seen_;
  double peak_ = 0;  // MiB, of all processes
};

// It trains on and on, so that its head speaks twice a second.
json BigJob::Manifest() const {
  json job = testing::MakeJob(kName, {{"steps", 1000000}, {"stepMillis", 100}}, options_.cpu,
                              options_.gpu);
  job["metadata"]["namespace"] = kNamespace;
  job["spec"]["runPolicy"]["startupDeadlineSeconds"] = 3600;
  // All are to find room on the nodes.
  for (json& role : job["spec"]["roles"]) {
    role["template"]["spec"]["containers"] =
        json::array({{{"name", "runtime"}, {"resources", {{"requests", {{"cpu", "100m"}}}}}}});
  }
  return job;
}

void BigJob::PrintMemory(const char* when) {
  const pid_t pid = process_->pid();
  peak_ = std::max(peak_, PeakMib(pid));
  std::printf("operator %s: %.1f MiB resident, %.1f MiB peak so far, %.1f CPU s\n", when,
              ResidentMib(pid), PeakMib(pid), CpuSeconds(pid));
}

bool BigJob::Start() {
  SmallJobs small(*seen_, {"small-0", "small-1", "small-2", "small-3"});
  const auto begin = Clock::now();
  const auto created = ControlPlane::Get().client().Create(testing::kJobs, kNamespace, Manifest());
  if (!created.ok()) {
    std::printf("refused: %s\n", std::string(created.status().message()).c_str());
    return false;
  }
  auto next_small = begin + seconds(1);
  const bool made = testing::WaitFor(
      "all pods are created",
      [&] {
        if (Clock::now() >= next_small) {
          small.Apply();
          next_small = Clock::now() + kBetweenSmallJobs;
        }
        return seen_->PodsMade(kKey, static_cast<size_t>(pods_)).has_value();
      },
      kBigPatience);
  if (!made) return false;
  std::printf("%d pods created after %.1f s\n", pods_, Since(begin));
  PrintMemory("with all pods created");
  const bool runs = testing::WaitFor(
      "the job runs", [&] { return seen_->IsTrue(kKey, "Running"); }, kBigPatience,
      [&] {
        return std::to_string(seen_->PodsRunning(kKey)) + " pods run; " + seen_->Registered(kKey) +
               " registered; head: " + testing::World::Get().FakeHead(kNamespace, kName).dump();
      });
  if (!runs) return false;
  const auto seconds_to = [&](const char* condition) {
    const auto when = seen_->WasTrue(kKey, condition);
    return when ? std::chrono::duration<double>(*when - begin).count() : 0;
  };
  std::printf("Registered after %.1f s, Running after %.1f s: %.1f s from one to the other\n",
              seconds_to("Registered"), seconds_to("Running"),
              seconds_to("Running") - seconds_to("Registered"));
  small.Await(kBigPatience);
  small.Print("beside the start");
  PrintMemory("with the job Running");
  return small.SecondsToPods().size() == small.count() &&
         Largest(small.SecondsToPods()) <= options_.others_seconds;
}

void BigJob::Steady() {
  const double cpu = CpuSeconds(process_->pid());
  const int writes = seen_->StatusWrites(kKey);
  std::this_thread::sleep_for(kSteady);
  std::printf(
      "%lld s of training: %.2f CPU s, %d status writes; the status takes at most %zu bytes\n",
      static_cast<long long>(kSteady.count()), CpuSeconds(process_->pid()) - cpu,
      seen_->StatusWrites(kKey) - writes, seen_->LargestStatus(kKey));
}

// Their pods are deleted as those of a node that is gone are, with no grace.
bool BigJob::Recover(const std::string& role, int count) {
  const std::map<std::string, std::string> before = seen_->Running(kKey);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(std::string(kName) + "-" + role + "-" + std::to_string(i));
  }
  const auto begin = Clock::now();
  InParallel(count, 16, [&](int i) {
    const absl::Status deleted = ControlPlane::Get().client().Delete(
        kube::kPods, {kNamespace, names[i]}, {.grace_period_seconds = 0});
    EXPECT_TRUE(deleted.ok()) << deleted.message();
  });
  const double told = Since(begin);
  const bool back = testing::WaitFor(
      "lost pods are back and run",
      [&] {
        std::this_thread::sleep_for(milliseconds(50));
        const std::map<std::string, std::string> now = seen_->Running(kKey);
        if (now.size() != static_cast<size_t>(pods_)) return false;
        return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          const auto old = before.find(name);
          return now.contains(name) && old != before.end() && now.at(name) != old->second;
        });
      },
      kBigPatience);
  const double replaced = Since(begin);
  const std::string all = std::to_string(pods_ - 1) + "/" + std::to_string(pods_ - 1);
  const bool running =
      back && testing::WaitFor(
                  "the head has all members again",
                  [&] {
                    std::this_thread::sleep_for(milliseconds(50));
                    return testing::World::Get().FakeHead(kNamespace, kName).value("state", "") ==
                               "RUNNING" &&
                           seen_->IsTrue(kKey, "Running");
                  },
                  kBigPatience);
  const double again = Since(begin);
  const bool registered =
      running && testing::WaitFor(
                     "the status says " + all, [&] { return seen_->Registered(kKey) == all; },
                     kBigPatience, [&] { return seen_->Registered(kKey); });
  std::printf(
      "%d lost %s members: deleted within %.1f s, new pods run after %.1f s, the job after %.1f s, "
      "%s in the status after %.1f s\n",
      count, role.c_str(), told, replaced, again, all.c_str(), Since(begin));
  return registered;
}

bool BigJob::StartAnew() {
  PrintMemory("before it is killed");
  process_->Kill();
  const auto begin = Clock::now();
  process_->Start();
  const bool follows = testing::WaitFor(
      "a new operator follows the head",
      [&] { return process_->Metric("hetero_head_streams") >= 1; }, kBigPatience);
  std::printf("a new operator follows the head %.1f s after its start\n", Since(begin));
  std::this_thread::sleep_for(seconds(5));
  PrintMemory("started anew");
  return follows;
}

bool BigJob::End() {
  const auto begin = Clock::now();
  ControlPlane::Get().Patch(testing::kJobs, {kNamespace, kName},
                            {{"spec", {{"runPolicy", {{"suspend", true}}}}}});
  const bool gone = testing::WaitFor(
      "all pods are gone",
      [&] {
        std::this_thread::sleep_for(milliseconds(200));
        return seen_->PodsRunning(kKey) == 0;
      },
      kBigPatience);
  std::printf("suspended: no pod runs after %.1f s\n", Since(begin));
  PrintMemory("with the job suspended");
  return gone;
}

int BigJob::Run() {
  testing::World::Get();
  MakeNamespaces({kNamespace, "small-0", "small-1", "small-2", "small-3"});
  process_ = std::make_unique<testing::OperatorProcess>(
      OperatorOptions({"--max-pods-per-job", std::to_string(std::max(pods_, 2000))}));
  testing::WaitFor("the operator is ready", [&] { return process_->ready(); });
  seen_ = std::make_unique<ClusterSeen>();
  std::this_thread::sleep_for(seconds(6));
  std::printf("one job of %d GPU and %d CPU pods\n", options_.gpu, options_.cpu);
  PrintMemory("at rest");
  const pid_t pid = process_->pid();
  bool good = Start();
  if (seen_->IsTrue(kKey, "Running")) {
    Steady();
    const std::string role = options_.gpu >= 100 ? "gpu" : "cpu";
    good &= Recover(role, 1);
    if (std::max(options_.gpu, options_.cpu) >= 100) good &= Recover(role, 100);
    good &= process_->running() && process_->pid() == pid;
    good &= StartAnew();
    good &= End();
  }
  const bool small_enough = peak_ <= options_.limit_mib;
  std::printf("operator: %.1f MiB peak resident, the limit is %.0f MiB: %s\n", peak_,
              options_.limit_mib, small_enough ? "kept" : "MISSED");
  return good && small_enough ? 0 : 1;
}

}  // namespace

int RunBigJob(const BigJobOptions& options) { return BigJob(options).Run(); }

}  // namespace hetero::bench
