#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "operator/kube/informer.h"
#include "tests/bench/operator_scale/measures.h"

namespace hetero::bench {

struct PodSeen {
  std::string job;  // "namespace/name"
  std::string uid;
  bool running = false;  // and not about to go
};

// What watches of the API server show of jobs and their pods, with the time at which they did.
// Thread-safe.
class ClusterSeen {
 public:
  ClusterSeen();

  // When the n-th pod of the job ("namespace/name") appeared, whatever became of it.
  std::optional<Clock::time_point> PodsMade(const std::string& job, size_t n) const;
  int PodsRunning(const std::string& job) const;
  // Uids of its pods that run, by name.
  std::map<std::string, std::string> Running(const std::string& job) const;
  // When the condition was first True.
  std::optional<Clock::time_point> WasTrue(const std::string& job,
                                           const std::string& condition) const;
  bool IsTrue(const std::string& job, const std::string& condition) const;
  std::string Registered(const std::string& job) const;  // status.registered, "2/3"
  // As JSON, as the API server sends it: the largest so far.
  size_t LargestStatus(const std::string& job) const;
  int StatusWrites(const std::string& job) const;  // versions of the object seen

 private:
  struct JobSeen {
    std::map<std::string, bool> conditions;
    std::string registered;
    size_t status_bytes = 0;
  };
  struct Known {
    std::vector<Clock::time_point> made;
    std::map<std::string, PodSeen> pods;  // by name
    std::map<std::string, Clock::time_point> was_true;
    JobSeen job;
    size_t largest_status = 0;
    int writes = 0;
  };

  static std::shared_ptr<const PodSeen> ViewPod(const testing::json& object);
  static std::shared_ptr<const JobSeen> ViewJob(const testing::json& object);
  void OnPod(const kube::ObjectKey& key, const std::shared_ptr<const PodSeen>& before,
             const std::shared_ptr<const PodSeen>& now);
  void OnJob(const kube::ObjectKey& key, const std::shared_ptr<const JobSeen>& now);
  template <typename Value>
  Value Of(const std::string& job, Value otherwise,
           const std::function<Value(const Known&)>& get) const;

  mutable std::mutex mutex_;  // guards known_
  std::map<std::string, Known> known_;
  metrics::Registry registry_;
  kube::Informer<JobSeen> jobs_;
  kube::Informer<PodSeen> pods_;
  std::vector<std::jthread> threads_;
};

}  // namespace hetero::bench
