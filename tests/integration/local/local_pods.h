#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/hetero_training_job.h"
#include "operator/children/children.h"
#include "operator/reconcile/certificates.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// The pods that the operator would create for a job, each run as a process of this machine: the
// container's own command, arguments and environment, with what a kubelet and a network would give
// it. A pod's address is one of the loopback network's, so that every pod has all ports; mounts
// are folders.
class LocalPods {
 public:
  // `environment`: variables of every container, "NAME=value". A job whose output is in no store
  // gets a folder for it.
  explicit LocalPods(api::HeteroTrainingJob job, std::vector<std::string> environment = {});

  // A Secret of the namespace, for pods that start later.
  void AddSecret(const std::string& name, std::map<std::string, std::string> keys) {
    secrets_[name] = std::move(keys);
  }
  // Starts the pod of a role's replica; again: as the operator creates it again.
  void Start(const std::string& role, int index = 0);
  // Starts this very pod, which names its role, index and the head's address.
  void StartPod(const nlohmann::json& object);
  // All pods of the job.
  void StartAll();

  // `pod` is "<role>-<index>", as everywhere here.
  ProgramRun& Run(const std::string& pod) { return *pods_.at(pod).run; }
  // What the head's Service has in a cluster: known before there is a head.
  std::string HeadAddress();
  std::string AddressOf(const std::string& pod) const { return pods_.at(pod).address; }
  // What the container has left for the kubelet; empty: nothing.
  std::string TerminationMessage(const std::string& pod) const;
  // Whether GET http://<pod>:<port><path> is answered with 200 before the deadline; the body.
  std::string Fetch(const std::string& pod, int port, const std::string& path) const;
  bool ready(const std::string& pod) const;

  const api::HeteroTrainingJob& job() const { return job_; }
  const reconcile::JobTrust& trust() const { return trust_; }
  const reconcile::OperatorIdentity& operator_identity() const { return operator_; }
  std::string output_folder() const { return folder_ / "output"; }

 private:
  struct Pod {
    std::string address;
    std::string termination_log;
    std::unique_ptr<ProgramRun> run;
  };
  std::string AddressFor(const std::string& pod);
  // Paths of a pod as they are on this machine, and its address for "any address".
  std::string Here(std::string text, const std::string& pod) const;
  // Nothing: the variable is not set.
  std::optional<std::string> ValueOf(const nlohmann::json& variable,
                                     const nlohmann::json& container, const std::string& pod) const;
  void MountSecret(const nlohmann::json& spec, const std::string& pod);

  api::HeteroTrainingJob job_;
  const std::vector<std::string> environment_;
  reconcile::JobTrust trust_;
  reconcile::OperatorIdentity operator_;
  TemporaryFolder folder_;
  std::map<std::string, std::map<std::string, std::string>> secrets_;
  std::map<std::string, Pod> pods_;
  int64_t incarnation_ = 0;
};

}  // namespace hetero::testing
