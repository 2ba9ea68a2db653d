#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fake_clock.h"
#include "base/metrics.h"
#include "fake_api.h"
#include "operator/plan/disruption.h"
#include "operator/reconcile/expectations.h"
#include "operator/reconcile/reconciler.h"

namespace hetero::reconcile {

// Heads that say what a test wants.
class FakeHeads : public Heads {
 public:
  void Follow(const std::string& key, const std::optional<plan::HeadTarget>& target) override {
    if (target) {
      followed[key] = *target;
    } else {
      followed.erase(key);
    }
  }
  std::optional<plan::HeadReport> Report(const std::string& key) const override {
    const auto it = reports.find(key);
    return it == reports.end() || !followed.contains(key) ? std::nullopt
                                                          : std::optional(it->second);
  }
  void ReportExit(const std::string&, const plan::ReportExit& exit) override {
    exits.push_back(exit);
  }
  void Stop(const std::string& key, const plan::StopHead& stop) override {
    stops.push_back(stop);
    reports[key].told_to_end = true;
  }
  void Warn(const std::string& key, const plan::WarnHead& warn) override {
    warnings.push_back(warn);
    reports[key].notices_fingerprint = plan::FingerprintOf(warn.notices);
  }

  std::map<std::string, plan::HeadTarget> followed;
  std::map<std::string, plan::HeadReport> reports;
  std::vector<plan::ReportExit> exits;
  std::vector<plan::StopHead> stops;
  std::vector<plan::WarnHead> warnings;
};

// One operator process over a FakeApi, and what is around it in a cluster: informers (Sync) and
// kubelets. The process can be killed: Restart() begins a new one.
class FakeCluster {
 public:
  FakeCluster();
  ~FakeCluster();

  // Returns the new job's uid. Key is always "team/<name>".
  std::string CreateJob(const std::string& name, const std::string& more_spec = "",
                        const nlohmann::json& labels = nlohmann::json::object());
  // Copies what the API has into the stores, as watches would.
  void Sync();
  absl::StatusOr<controller::Controller::Result> Pass(const std::string& name,
                                                      std::stop_token stop = {});
  // Passes and syncs until two passes in a row change nothing; false after 50. Time moves on by
  // 100 ms per pass. A process that is `dead` is replaced by a new one.
  bool Settle(const std::string& name);
  void Restart();

  api::JobStatus Status(const std::string& name) const;
  plan::ObservedPod Pod(const std::string& name) const;
  // Every pod that is not yet running or ended.
  void RunPods();
  void EndContainer(const std::string& pod, int exit_code, const std::string& message = "");
  // Terminating pods go away.
  void FinishTerminating();
  // From nothing to a job that trains.
  void Start(const std::string& name);
  // The job's Workload, as Kueue admits it to the flavor `on-demand`, and evicts it.
  void Admit(const std::string& name);
  void Evict(const std::string& name);
  // The head of `name` says so: all members registered.
  void HeadSays(const std::string& name, plan::HeadReport::State state);

  FakeApi api;
  base::FakeClock clock;
  FakeHeads heads;
  children::Settings settings;
  bool dead = false;
  bool queues_served = true;
  bool pod_groups_served = true;

 private:
  struct Process;
  std::string Fingerprint() const;

  kube::Store<plan::ObservedJob> jobs_;
  kube::Store<plan::ObservedPod> pods_;
  kube::Store<plan::ObservedObject> services_, config_maps_, network_policies_, pod_groups_;
  kube::Store<plan::ObservedWorkload> workloads_;
  kube::Store<plan::ObservedFlavor> flavors_;
  kube::Store<int32_t> priorities_;
  OperatorIdentity identity_;
  std::unique_ptr<Process> process_;
};

// Runs `live`, which says how things ended, undisturbed and then once for each of its writes, at
// which the process dies. Fails the test where that leads to another end. Returns the undisturbed
// one.
std::string DieAtEachWrite(const std::function<std::string(FakeCluster&)>& live,
                           FakeApi::Fate fate);

// Writes with this method whose path has the part in it.
int CountWrites(const FakeApi& api, const std::string& method, const std::string& part);
// Of a condition; "absent" where there is none.
std::string ReasonOf(const api::JobStatus& status, api::ConditionType type);

}  // namespace hetero::reconcile
