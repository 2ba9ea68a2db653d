#include "tests/fakes/head/director.h"

#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <utility>

#include "api/peer_uri.h"
#include "api/ports.h"
#include "api/role_type.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "base/tls.h"
#include "operator/children/names.h"
#include "operator/children/role_type.h"

namespace hetero::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kWorkers = 8;
constexpr base::Duration kTick = milliseconds(10);
constexpr base::Duration kShortestStep = milliseconds(20);
constexpr base::Duration kIdle = std::chrono::seconds(1);
constexpr base::Duration kRetry = milliseconds(200);
// Times as long as its step took: a job of thousands of pods is not to keep others waiting.
constexpr int kRest = 10;

bool IsHead(const JobView& job, const PodView& pod) {
  return std::any_of(job.roles.begin(), job.roles.end(), [&](const RoleView& role) {
    return role.type == api::kHeadType && role.name == pod.role;
  });
}

}  // namespace

Director::Director(kube::Client& client, base::Clock& clock) : client_(client), clock_(clock) {
  threads_.emplace_back([this](std::stop_token stop) { Run(stop); });
  for (int i = 0; i < kWorkers; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
  }
}

Director::~Director() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  jobs_.clear();
}

void Director::OnJob(const kube::ObjectKey& key, std::shared_ptr<const JobView> before,
                     std::shared_ptr<const JobView> now) {
  const base::MutexLock lock(mutex_);
  if (before && (!now || now->uid != before->uid)) Find(before->uid)->view = nullptr;
  if (!now) return;
  const JobPointer job = Find(now->uid);
  job->key = key;
  job->view = std::move(now);
}

void Director::OnPod(std::shared_ptr<const PodView> before, std::shared_ptr<const PodView> now) {
  const base::MutexLock lock(mutex_);
  if (before && (!now || now->uid != before->uid)) Find(before->job_uid)->pods.erase(before->uid);
  if (now) Find(now->job_uid)->pods[now->uid] = now;
}

void Director::OnService(std::shared_ptr<const ServiceView> before,
                         std::shared_ptr<const ServiceView> now) {
  const base::MutexLock lock(mutex_);
  if (before) Find(before->job_uid)->cluster_ip.clear();
  if (now) Find(now->job_uid)->cluster_ip = now->cluster_ip;
}

json Director::Jobs() const {
  const base::MutexLock lock(mutex_);
  json jobs = json::object();
  for (const auto& [uid, job] : jobs_) {
    if (job->key.name.empty()) continue;
    // Of several that had the name, the one that exists.
    if (!job->view && jobs.contains(job->key.ToString())) continue;
    const v1::JobStatus& status = job->play.status();
    jobs[job->key.ToString()] = {{"uid", uid},
                                 {"attempt", job->attempt},
                                 {"generation", job->play.generation()},
                                 {"state", v1::JobStatus::State_Name(status.state())},
                                 {"step", job->play.step()},
                                 {"watchers", job->server ? job->server->watchers() : 0},
                                 {"exits", job->exits},
                                 {"problem", job->problem}};
  }
  return jobs;
}

Director::JobPointer Director::Find(const std::string& uid) {
  JobPointer& job = jobs_[uid];
  if (!job) {
    job = std::make_shared<Job>();
    job->uid = uid;
  }
  job->due = {};
  return job;
}

void Director::Run(std::stop_token stop) {
  base::SetThreadName("director");
  while (clock_.SleepFor(kTick, stop)) {
    const base::MutexLock lock(mutex_);
    const base::Instant now = clock_.Now();
    for (const auto& [uid, job] : jobs_) {
      if (job->due > now || job->rests_until > now) continue;
      StepJob(job, now);
      const base::Instant end = clock_.Now();
      job->rests_until = end + kRest * (end - now);
    }
  }
}

void Director::Work(std::stop_token stop) {
  base::SetThreadName("worker");
  while (true) {
    std::function<void()> task;
    {
      const base::MutexLock lock(mutex_);
      const bool there = queued_.Wait(
          mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !tasks_.empty(); });
      if (!there) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void Director::Enqueue(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  queued_.NotifyOne();
}

std::string Director::RunningHead(const Job& job) const {
  if (!job.view) return "";
  for (const auto& [uid, pod] : job.pods) {
    if (pod->running && pod->attempt == job.attempt && IsHead(*job.view, *pod)) return uid;
  }
  return "";
}

Play::Scene Director::SceneOf(const Job& job) const {
  Play::Scene scene{.attempt = job.attempt, .roles = job.view->roles, .go_on = job.view->go_on};
  for (const auto& [uid, pod] : job.pods) {
    if (pod->attempt == job.attempt) scene.pods.push_back(*pod);
  }
  return scene;
}

void Director::StepJob(const JobPointer& job, base::Instant now) {
  job->due = now + kIdle;
  if (job->view) {
    for (const auto& [uid, pod] : job->pods) {
      if (IsHead(*job->view, *pod)) job->attempt = std::max(job->attempt, pod->attempt);
    }
  }
  const std::string head_pod = RunningHead(*job);
  KeepPort(job, head_pod, now);
  if (!job->view || job->attempt == 0) return;
  const Script script = ParseScript(job->view->script, job->attempt);
  const Play::Action action = job->play.Step(SceneOf(*job), script, now);
  if (!action.kill_pod.empty()) {
    job->killed[action.kill_uid] = {
        .pod = {job->key.name_space, action.kill_pod},
        .annotations = {{"fake.hetero.dev/exit-code", std::to_string(script.kill_exit_code)}}};
  }
  KillPods(job, now);
  if (head_pod.empty()) return;

  if (action.publish && job->server) job->server->Publish(job->play.status(), action.ended);
  if (action.disconnect && job->server) job->server->Disconnect();
  if (action.ended) {
    const base::Instant exits = *job->play.ended_at() + script.linger;
    if (now >= exits) {
      EndPods(job, script);
    } else {
      job->due = exits;
    }
  } else if (job->play.status().state() == v1::JobStatus::RUNNING) {
    job->due = now + std::max(script.step_time, kShortestStep);
  } else if (script.registration_delay.count() > 0) {
    job->due = now + kShortestStep;
  }
}

void Director::KeepPort(const JobPointer& job, const std::string& head_pod, base::Instant now) {
  if (job->port_busy) return;
  if (job->server && (job->served_pod != head_pod || job->cluster_ip.empty())) {
    job->port_busy = true;
    Enqueue([this, job, server = std::shared_ptr<StatusServer>(std::move(job->server))]() mutable {
      server.reset();
      const base::MutexLock lock(mutex_);
      job->port_busy = false;
      job->due = {};
    });
    return;
  }
  if (job->server || head_pod.empty() || job->cluster_ip.empty()) return;
  if (now < job->retry) {
    job->due = job->retry;
    return;
  }
  job->port_busy = true;
  Enqueue([this, job, head_pod] { OpenPort(job, head_pod); });
}

void Director::OpenPort(const JobPointer& job, const std::string& head_pod) {
  kube::ObjectKey key;
  std::string address;
  bool tls = false;
  {
    const base::MutexLock lock(mutex_);
    key = job->key;
    address = job->cluster_ip + ":" + std::to_string(api::kStatusPort);
    tls = job->view && job->view->tls;
  }
  absl::StatusOr<std::unique_ptr<StatusServer>> server = absl::UnknownError("");
  auto credentials = Credentials(key, job->uid, tls);
  if (credentials.ok()) {
    // The weak pointer: the job owns the server, and the server this function.
    server =
        StatusServer::Start(address, *credentials,
                            [this, weak = std::weak_ptr<Job>(job)](const v1::ExitReport& report) {
                              const JobPointer told = weak.lock();
                              if (!told) return;
                              const base::MutexLock lock(mutex_);
                              told->exits.push_back({{"role", report.role()},
                                                     {"index", report.index()},
                                                     {"exitCode", report.exit_code()},
                                                     {"signal", report.signal()},
                                                     {"message", report.message()},
                                                     {"replaced", report.replaced()}});
                              told->play.OnExit(report);
                              told->due = {};
                            });
  } else {
    server = credentials.status();
  }
  const base::MutexLock lock(mutex_);
  job->port_busy = false;
  job->due = {};
  if (!server.ok()) {
    job->problem = std::string(server.status().message());
    job->retry = clock_.Now() + kRetry;
    log::Warning("no status port", {{"job", key.ToString()}, {"error", job->problem}});
    return;
  }
  job->problem.clear();
  job->server = *std::move(server);
  job->served_pod = head_pod;
  job->play.TellAgain();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Director::Credentials(
    const kube::ObjectKey& key, const std::string& uid, bool tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  api::Metadata metadata;
  metadata.name = key.name;
  metadata.uid = uid;
  HETERO_ASSIGN_OR_RETURN(
      const json secret,
      client_.Get(kube::kSecrets, {key.name_space, children::SecretName(metadata)}));
  HETERO_ASSIGN_OR_RETURN(
      const json config,
      client_.Get(kube::kConfigMaps, {key.name_space, children::ConfigMapName(metadata)}));
  return base::MakePeerServerCredentials(
      {.ca_pem = ConfigValue(config, "ca.crt") + ConfigValue(config, "operator-ca.crt"),
       .certificate_pem = SecretValue(secret, children::CertificateKey(api::RoleType::kHead)),
       .key_pem = SecretValue(secret, children::PrivateKeyKey(api::RoleType::kHead)),
       .allowed_uris = {api::kOperatorUri}});
}

void Director::EndPods(const JobPointer& job, const Script& script) {
  struct Exit {
    kube::ObjectKey pod;
    std::string uid;
    json annotations;
  };
  std::vector<Exit> exits;
  Exit head;
  for (const auto& [uid, pod] : job->pods) {
    if (pod->attempt != job->attempt || !pod->running ||
        script.keep_running.contains(pod->member()))
      continue;
    if (!job->exited.insert(uid).second) continue;
    const bool is_head = IsHead(*job->view, *pod);
    const bool bad = !script.succeeds && (is_head || pod->member() == script.failed_member);
    Exit exit{.pod = {pod->name_space, pod->name},
              .uid = uid,
              .annotations = {{"fake.hetero.dev/exit-code", bad ? "1" : "0"}}};
    if (!is_head) {
      exits.push_back(std::move(exit));
      continue;
    }
    exit.annotations["fake.hetero.dev/message"] =
        api::VerdictToJson(job->play.verdict(script, job->key.name));
    head = std::move(exit);
  }
  if (!head.uid.empty()) exits.push_back(std::move(head));
  if (exits.empty()) return;
  Enqueue([this, job, exits = std::move(exits)] {
    for (const Exit& exit : exits) {
      const absl::Status status = Annotate(exit.pod, exit.uid, exit.annotations);
      if (status.ok() || absl::IsNotFound(status) || absl::IsAborted(status)) continue;
      const base::MutexLock lock(mutex_);
      job->problem = std::string(status.message());
      job->exited.erase(exit.uid);  // tried again with the next step
    }
  });
}

// A process dies whether the API server is there to be told or not: it is told until it hears.
void Director::KillPods(const JobPointer& job, base::Instant now) {
  if (!job->killed.empty()) job->due = now + kRetry;
  if (now < job->retry_kill) return;
  for (auto& [uid, killed] : job->killed) {
    if (std::exchange(killed.under_way, true)) continue;
    Enqueue([this, job, uid = uid, pod = killed.pod, annotations = killed.annotations] {
      const absl::Status status = Annotate(pod, uid, annotations);
      const base::MutexLock lock(mutex_);
      if (status.ok() || absl::IsNotFound(status) || absl::IsAborted(status)) {
        job->killed.erase(uid);
        return;
      }
      job->problem = std::string(status.message());
      job->killed[uid].under_way = false;
      job->retry_kill = clock_.Now() + kRetry;
    });
  }
}

absl::Status Director::Annotate(const kube::ObjectKey& pod, const std::string& uid,
                                const json& annotations) {
  return client_
      .Patch(kube::kPods, pod, kube::PatchType::kMerge,
             {{"metadata", {{"uid", uid}, {"annotations", annotations}}}})
      .status();
}

}  // namespace hetero::testing
