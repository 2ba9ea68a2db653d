#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "operator/kube/client.h"
#include "tests/fakes/head/play.h"
#include "tests/fakes/head/status_server.h"
#include "tests/fakes/head/views.h"

namespace hetero::testing {

// Plays the head of every job in the cluster: a status port on the job's service address as long as
// its head's pod runs, a Play behind it, and the pods' exits at the end. One thread for all plays,
// a few for what waits (API calls, ports). Safe from any thread.
class Director {
 public:
  Director(kube::Client& client, base::Clock& clock);
  ~Director();  // closes all ports

  // What informers tell; null: gone.
  void OnJob(const kube::ObjectKey& key, std::shared_ptr<const JobView> before,
             std::shared_ptr<const JobView> now);
  void OnPod(std::shared_ptr<const PodView> before, std::shared_ptr<const PodView> now);
  void OnService(std::shared_ptr<const ServiceView> before, std::shared_ptr<const ServiceView> now);

  // By "namespace/name": uid, attempt, generation, state, step, watchers, exits, problem.
  nlohmann::json Jobs() const;

 private:
  struct Job {
    kube::ObjectKey key;
    std::string uid;
    std::shared_ptr<const JobView> view;                         // null: gone or unseen
    std::map<std::string, std::shared_ptr<const PodView>> pods;  // by uid
    std::string cluster_ip;
    Play play;
    int attempt = 0;
    std::unique_ptr<StatusServer> server;
    std::string served_pod;  // uid of the head's pod that the port is open for
    bool port_busy = false;  // being opened or closed
    base::Instant retry;     // not to be opened before
    base::Instant retry_kill;
    std::set<std::string> exited;  // uids of the pods that were told to end
    struct Killed {
      kube::ObjectKey pod;
      nlohmann::json annotations;
      bool under_way = false;
    };
    std::map<std::string, Killed> killed;  // by uid: whose end the API server is still to be told
    nlohmann::json exits = nlohmann::json::array();
    std::string problem;  // why its port could not be opened, or a pod not ended
    base::Instant due;
    base::Instant rests_until;  // no step before, whatever is due
  };
  using JobPointer = std::shared_ptr<Job>;

  JobPointer Find(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // makes it
  void Run(std::stop_token stop);
  void Work(std::stop_token stop);
  void Enqueue(std::function<void()> task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StepJob(const JobPointer& job, base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string RunningHead(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Play::Scene SceneOf(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepPort(const JobPointer& job, const std::string& head_pod, base::Instant now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPods(const JobPointer& job, const Script& script) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KillPods(const JobPointer& job, base::Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On a worker.
  void OpenPort(const JobPointer& job, const std::string& head_pod);
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const kube::ObjectKey& key,
                                                                       const std::string& uid,
                                                                       bool tls);
  // `uid`: no other pod of that name is meant (kAborted).
  absl::Status Annotate(const kube::ObjectKey& pod, const std::string& uid,
                        const nlohmann::json& annotations);

  kube::Client& client_;
  base::Clock& clock_;
  mutable base::Mutex mutex_;  // guards what is in the jobs, too
  std::map<std::string, JobPointer> jobs_ ABSL_GUARDED_BY(mutex_);  // by uid
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  base::CondVar queued_;
  std::vector<std::jthread> threads_;
};

}  // namespace hetero::testing
