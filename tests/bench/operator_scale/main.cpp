#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "api/job_resource.h"
#include "tests/bench/operator_scale/recording.h"
#include "tests/integration/operator/support/world.h"

// How many jobs the operator carries through a real control plane, against a plain client that only
// repeats its writes.
//   operator_scale run --jobs 1000 --recording FILE       inside tests/cluster/run with auditing on
//   operator_scale replay --recording FILE                inside another tests/cluster/run: a fresh
//   API server
// scripts/operator_scale.sh does both and prints the table.
namespace hetero::bench {
namespace {

using std::chrono::seconds;
using testing::ControlPlane;
using testing::json;
using Clock = std::chrono::steady_clock;

constexpr int kNamespaces = 10;
constexpr int kClients = 16;

std::string NamespaceOf(int job) { return "scale-" + std::to_string(job % kNamespaces); }

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void MakeNamespaces() {
  ControlPlane& plane = ControlPlane::Get();
  for (int i = 0; i < kNamespaces; ++i) {
    plane.MustKubectl({"create", "namespace", NamespaceOf(i)});
  }
  for (int i = 0; i < kNamespaces; ++i) {
    testing::WaitFor("the default ServiceAccount", [&] {
      return !plane.Object({"", "v1", "serviceaccounts", true}, {NamespaceOf(i), "default"})
                  .is_null();
    });
  }
}

json Job(int index) {
  json job =
      testing::MakeJob("job-" + std::to_string(index), {{"steps", 10}, {"stepMillis", 20}}, 2, 1);
  job["metadata"]["namespace"] = NamespaceOf(index);
  return job;
}

// Calls work(i) for i in [0, count) from kClients threads.
void InParallel(int count, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kClients; ++t) {
    threads.emplace_back([&] {
      for (int i; (i = next++) < count;) work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A line of /proc/PID/status, in its own unit.
int64_t ProcessStatus(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1));
  }
  return 0;
}

double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / sysconf(_SC_CLK_TCK);
}

// What the operator holds at the worst, looked at five times a second: its resident memory, and
// that beyond what each live status stream may take.
class MemoryWatch {
 public:
  explicit MemoryWatch(testing::OperatorProcess& process)
      : thread_([this, &process](std::stop_token stop) {
          while (!stop.stop_requested()) {
            const double streams = process.Metric("hetero_head_streams");
            const double mib = ProcessStatus(process.pid(), "VmRSS") / 1024.0;
            most_streams_ = std::max(most_streams_, streams);
            beyond_ = std::max(beyond_, mib - streams * kStreamKib / 1024);
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
          }
        }) {}
  void Print() {
    thread_.request_stop();
    thread_.join();
    std::printf("at most %.0f live status streams; %.1f MiB resident beyond %.0f KiB for each\n",
                most_streams_, beyond_, kStreamKib);
  }

 private:
  static constexpr double kStreamKib = 100;
  double most_streams_ = 0, beyond_ = 0;
  std::jthread thread_;
};

// All children of the given kind in the benchmark's namespaces.
int CountPods() {
  int count = 0;
  for (int i = 0; i < kNamespaces; ++i) {
    count += static_cast<int>(ControlPlane::Get().Objects(kube::kPods, NamespaceOf(i)).size());
  }
  return count;
}

int Run(int jobs, const std::string& recording_file, const std::string& audit_log,
        int idle_seconds) {
  testing::World& world = testing::World::Get();
  ControlPlane& plane = ControlPlane::Get();
  MakeNamespaces();
  testing::OperatorProcess process(
      {.arguments = {"--no-leader-elect", "--qps", "5000", "--burst", "5000", "--workers", "16"}});
  testing::WaitFor("the operator is ready", [&] { return process.ready(); });
  std::this_thread::sleep_for(seconds(6));
  std::printf("operator at rest: %.1f MiB resident\n",
              ProcessStatus(process.pid(), "VmRSS") / 1024.0);

  MemoryWatch memory(process);
  const auto begin = Clock::now();
  InParallel(jobs, [&](int i) {
    auto created = plane.client().Create(testing::kJobs, NamespaceOf(i), Job(i));
    EXPECT_TRUE(created.ok()) << created.status().message();
  });
  std::printf("%d jobs created by the client in %.1f s\n", jobs, Since(begin));
  const std::string kSucceeded = R"(hetero_jobs{state="Succeeded"})";
  const bool finished = testing::WaitFor(
      "all jobs succeed",
      [&] {
        std::this_thread::sleep_for(seconds(2));
        const double succeeded = process.Metric(kSucceeded);
        std::printf("%6.1f s: %.0f jobs have succeeded\n", Since(begin), succeeded);
        return succeeded >= jobs;
      },
      seconds(1200), [&] { return process.metrics(); });
  testing::WaitFor(
      "all pods are gone",
      [&] {
        std::this_thread::sleep_for(seconds(1));
        return CountPods() == 0;
      },
      seconds(300));
  const double total = Since(begin);
  const double cpu = CpuSeconds(process.pid());
  std::printf(
      "%d jobs, %d pods: created, registered, run, finished and deleted in %.1f s: %.1f jobs/s, "
      "%.1f pods/s\n",
      jobs, jobs * 4, total, jobs / total, jobs * 4 / total);
  std::printf("operator: %.1f MiB peak resident, %.1f CPU s\n",
              ProcessStatus(process.pid(), "VmHWM") / 1024.0, cpu);
  memory.Print();

  std::this_thread::sleep_for(seconds(5));
  const double idle_cpu = CpuSeconds(process.pid());
  auto requests = [&] {
    double sum = 0;
    std::istringstream lines(process.metrics());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("rest_client_requests_total", 0) == 0)
        sum += std::stod(line.substr(line.rfind(' ')));
    }
    return sum;
  };
  const double idle_requests = requests();
  std::this_thread::sleep_for(seconds(idle_seconds));
  std::printf("idle for %d s with %d finished jobs: %.2f CPU s, %.0f API calls\n", idle_seconds,
              jobs, CpuSeconds(process.pid()) - idle_cpu, requests() - idle_requests);

  const Recording recording =
      ReadAuditLog(audit_log, std::string("system:serviceaccount:") + testing::kSystemNamespace +
                                  ":" + world.account());
  Save(recording, recording_file);
  std::printf(
      "writes: %.1f per job (events among them), %.1f other calls per job, in %.1f s from first to "
      "last\n",
      static_cast<double>(recording.writes.size()) / jobs,
      static_cast<double>(recording.reads) / jobs, recording.seconds);
  return finished && recording.writes.size() > 0 ? 0 : 1;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// A job as the replay has it on this cluster.
struct Replayed {
  std::string uid;
  std::string version;  // what a write of its status must name
};

// What the write would be on this cluster: its own uids and versions, no preconditions of the other
// one.
std::string Translate(const std::string& body, const std::string& old_uid,
                      const Replayed& replayed) {
  if (body.empty()) return body;
  json object =
      json::parse(old_uid.empty() ? body : Replaced(body, old_uid, replayed.uid), nullptr, false);
  if (object.contains("metadata") && object["metadata"].is_object()) {
    json& metadata = object["metadata"];
    if (object.value("kind", "") != api::kKind) {
      metadata.erase("resourceVersion");
      metadata.erase("uid");
    } else {
      metadata["resourceVersion"] = replayed.version;
      metadata["uid"] = replayed.uid;
    }
  }
  object.erase("preconditions");
  return object.dump();
}

Replayed IdentityOf(const json& job) {
  return {job["metadata"]["uid"].get<std::string>(),
          job["metadata"]["resourceVersion"].get<std::string>()};
}

int Replay(const std::string& recording_file) {
  const Recording recording = Load(recording_file);
  testing::World::Get();
  ControlPlane& plane = ControlPlane::Get();
  MakeNamespaces();
  std::map<std::string, std::deque<Write>> by_job;
  std::vector<std::string> order;
  for (const Write& write : recording.writes) {
    if (by_job[write.job].empty()) order.push_back(write.job);
    by_job[write.job].push_back(write);
  }
  const std::map<std::string, std::string> old_uids(recording.uids.begin(), recording.uids.end());
  std::mutex mutex;  // guards ready, by_job's queues, replayed, left and failures
  std::deque<std::string> ready(order.begin(), order.end());
  std::map<std::string, Replayed> replayed;
  size_t left = recording.writes.size();
  int64_t failures = 0;
  auto work = [&] {
    while (true) {
      std::string job;
      Write write;
      Replayed now;
      {
        std::unique_lock lock(mutex);
        if (left == 0) return;
        if (ready.empty()) {
          lock.unlock();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          continue;
        }
        job = ready.front();
        ready.pop_front();
        write = by_job[job].front();
        by_job[job].pop_front();
        now = replayed[job];
        --left;
      }
      bool failed = false;
      if (now.uid.empty()) {
        const std::string name = job.substr(job.find('/') + 1);
        auto created = plane.client().Create(testing::kJobs, job.substr(0, job.find('/')),
                                             Job(std::stoi(name.substr(name.find('-') + 1))));
        failed = !created.ok();
        if (created.ok()) now = IdentityOf(*created);
      }
      auto old_uid = old_uids.find(job);
      const std::string old = old_uid == old_uids.end() ? "" : old_uid->second;
      auto response = plane.transport().Send(
          {.method = write.method,
           .path = old.empty() ? write.uri : Replaced(write.uri, old, now.uid),
           .body = Translate(write.body, old, now),
           .content_type = write.body.empty() ? "" : write.content_type},
          seconds(30));
      failed |= !response.ok() || (response->status >= 400 && response->status != 404);
      std::lock_guard lock(mutex);
      if (failed && failures < 3) {
        std::printf("refused: %s %s: %s\n", write.method.c_str(), write.uri.c_str(),
                    response.ok() ? response->body.c_str() : response.status().ToString().c_str());
      }
      if (!failed && write.uri.ends_with("/status")) {
        now = IdentityOf(json::parse(response->body, nullptr, false));
      }
      replayed[job] = now;
      failures += failed;
      if (!by_job[job].empty()) ready.push_back(job);
    }
  };
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  const double took = Since(begin);
  std::printf("plain %d-way client: the same %zu writes in %.1f s (%lld refused)\n", kClients,
              recording.writes.size(), took, static_cast<long long>(failures));
  std::printf("ratio operator / plain client: %.2f\n", recording.seconds / took);
  return 0;
}

}  // namespace
}  // namespace hetero::bench

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  CLI::App app{"The operator at scale on a real control plane."};
  app.require_subcommand(1);
  int jobs = 1000, idle = 60;
  std::string recording = "recording.json", audit;
  CLI::App* run = app.add_subcommand("run", "Carry jobs through and record the operator's writes");
  run->add_option("--jobs", jobs)->capture_default_str();
  run->add_option("--idle-seconds", idle)->capture_default_str();
  run->add_option("--recording", recording)->capture_default_str();
  run->add_option("--audit-log", audit)->required();
  CLI::App* replay = app.add_subcommand("replay", "Repeat the recorded writes with a plain client");
  replay->add_option("--recording", recording)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return run->parsed() ? hetero::bench::Run(jobs, recording, audit, idle)
                       : hetero::bench::Replay(recording);
}
