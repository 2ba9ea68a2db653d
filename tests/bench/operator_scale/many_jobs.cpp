#include "tests/bench/operator_scale/many_jobs.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "api/job_resource.h"
#include "tests/bench/operator_scale/measures.h"
#include "tests/bench/operator_scale/recording.h"

namespace hetero::bench {
namespace {

using std::chrono::seconds;
using testing::ControlPlane;
using testing::json;

constexpr int kNamespaces = 10;
constexpr int kClients = 16;
constexpr double kMostMib = 64;
constexpr double kMostRatio = 1.15;

std::string NamespaceOf(int job) { return "scale-" + std::to_string(job % kNamespaces); }

std::vector<std::string> Namespaces() {
  std::vector<std::string> names;
  for (int i = 0; i < kNamespaces; ++i) names.push_back(NamespaceOf(i));
  return names;
}

json Job(int index) {
  json job =
      testing::MakeJob("job-" + std::to_string(index), {{"steps", 10}, {"stepMillis", 20}}, 2, 1);
  job["metadata"]["namespace"] = NamespaceOf(index);
  return job;
}

// All children of the given kind in the benchmark's namespaces.
int CountPods() {
  int count = 0;
  for (int i = 0; i < kNamespaces; ++i) {
    count += static_cast<int>(ControlPlane::Get().Objects(kube::kPods, NamespaceOf(i)).size());
  }
  return count;
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

}  // namespace

int RunManyJobs(int jobs, const std::string& recording_file, const std::string& audit_log,
                int idle_seconds) {
  testing::World& world = testing::World::Get();
  ControlPlane& plane = ControlPlane::Get();
  MakeNamespaces(Namespaces());
  testing::OperatorProcess process(
      {.arguments = {"--no-leader-elect", "--qps", "5000", "--burst", "5000", "--workers", "16"}});
  testing::WaitFor("the operator is ready", [&] { return process.ready(); });
  std::this_thread::sleep_for(seconds(6));
  std::printf("operator at rest: %.1f MiB resident\n", ResidentMib(process.pid()));

  MemoryWatch memory(process);
  const auto begin = Clock::now();
  InParallel(jobs, kClients, [&](int i) {
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
  const double peak = PeakMib(process.pid());
  const bool small = peak <= kMostMib;
  std::printf("operator: %.1f MiB peak resident, %.1f CPU s; the target is at most %.0f MiB: %s\n",
              peak, cpu, kMostMib, small ? "kept" : "MISSED");
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
  return finished && small && recording.writes.size() > 0 ? 0 : 1;
}

int ReplayManyJobs(const std::string& recording_file) {
  const Recording recording = Load(recording_file);
  testing::World::Get();
  ControlPlane& plane = ControlPlane::Get();
  MakeNamespaces(Namespaces());
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
      // An event that the operator has sent twice, since no answer came, is there already.
      const bool repeated =
          response.ok() && response->status == 409 && write.uri.ends_with("/events");
      failed |= !response.ok() || (response->status >= 400 && response->status != 404 && !repeated);
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
  const double ratio = recording.seconds / took;
  const bool kept = ratio <= kMostRatio;
  std::printf("ratio operator / plain client: %.2f; the target is at most %.2f: %s\n", ratio,
              kMostRatio, kept ? "kept" : "MISSED");
  return kept && failures == 0 ? 0 : 1;
}

}  // namespace hetero::bench
