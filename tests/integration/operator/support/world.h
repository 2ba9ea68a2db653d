#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/operator/support/command.h"
#include "tests/integration/operator/support/control_plane.h"

// What every test of the operator on the real control plane needs around it: the chart's own
// objects, an operator with exactly their rights, the fake heads, and jobs to apply.
namespace hetero::testing {

inline constexpr char kSystemNamespace[] = "hetero-system";
extern const kube::Resource kJobs;

// Installs the chart with Helm (its Deployment scaled to none: the operator runs as a process of
// the test) and starts the process that plays all heads. Once per program.
class World {
 public:
  static World& Get();
  // Installs Kueue into the cluster, and gives the chart's ServiceAccount the rights that it needs
  // for it. Once per program.
  void InstallKueue();
  // The definitions of PodGroups, Volcano's and the coscheduling plugin's, and the rights on them.
  // Once per program.
  void InstallPodGroups();
  // Null while nobody has asked for it: on nodes where nothing is played.
  static World* Existing();
  // Name of the ServiceAccount that the chart made.
  std::string account() const { return "hetero-hetero-operator"; }
  // What the fake heads saw, by "namespace/name".
  json FakeHeads();
  json FakeHead(const std::string& name_space, const std::string& job);

 private:
  World();
  std::unique_ptr<BackgroundProgram> fake_heads_;
  int fake_port_ = 0;
  bool kueue_installed_ = false;
  bool pod_groups_installed_ = false;
};

// hetero-operator as a process, through `server` (empty: the API server itself).
class OperatorProcess {
 public:
  struct Options {
    std::string server;
    std::vector<std::string> arguments;    // besides the usual ones
    std::vector<std::string> environment;  // likewise: "NAME=value"
    bool start = true;
  };
  explicit OperatorProcess(Options options);
  OperatorProcess() : OperatorProcess(Options{}) {}
  ~OperatorProcess();

  void Start();
  // kill -9, from any thread; does nothing when it is not running.
  void Kill();
  // SIGTERM; returns the exit code, -1 when it is still there after 35 s.
  int Stop();
  bool running();
  pid_t pid();
  bool ready();
  std::string metrics();
  // One sample of /metrics, 0 when absent: `series` with its labels as printed.
  double Metric(const std::string& series);
  std::string log() const;
  int port() const { return port_; }

 private:
  Options options_;
  std::string kubeconfig_;
  std::string log_file_;
  int port_ = 0;
  mutable std::mutex mutex_;  // guards program_
  std::unique_ptr<BackgroundProgram> program_;
};

// A namespace with a default ServiceAccount; deleted at the end without waiting.
class TestNamespace {
 public:
  explicit TestNamespace(const std::string& prefix);
  ~TestNamespace();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// A job of one head, `cpu` CPU workers and `gpu` GPU workers (without GPUs). `script` is what its
// fake head does, see tests/fakes/head.
json MakeJob(const std::string& name, const json& script = json::object(), int cpu = 2,
             int gpu = 1);
// The role of that name, to edit.
json& RoleOf(json& job, const std::string& role);
// Sets an annotation in the role's pod template.
void AnnotatePods(json& job, const std::string& role, const std::string& name,
                  const std::string& value);

// One applied job, looked at through the API.
class JobUnderTest {
 public:
  JobUnderTest(const std::string& name_space, json job);

  json Get() const;     // null when gone
  json Status() const;  // {} when absent
  std::string uid() const { return uid_; }
  const std::string& name() const { return key_.name; }
  const kube::ObjectKey& key() const { return key_; }
  bool Is(const std::string& condition) const;  // True
  std::string Reason(const std::string& condition) const;
  std::string Message(const std::string& condition) const;
  bool WaitIs(const std::string& condition,
              std::chrono::seconds deadline = std::chrono::seconds(60)) const;
  // Asked of the API by owner uid and label.
  std::vector<std::string> Children() const;
  bool WaitGone(std::chrono::seconds deadline = std::chrono::seconds(60)) const;  // no child left
  bool WaitPods(int count,
                std::chrono::seconds deadline = std::chrono::seconds(60)) const;  // Running
  kube::ObjectKey PodKey(const std::string& role, int index) const;
  json Pod(const std::string& role, int index) const;  // null when gone
  std::string PodUid(const std::string& role, int index) const;
  // Ends the pod's container `runtime` (tests/cluster/kwok.yaml); `reason` "OOMKilled", for
  // example.
  void EndPod(const std::string& role, int index, int exit_code, const std::string& message = "",
              const std::string& reason = "") const;
  void EvictPod(const std::string& role, int index) const;
  void Continue() const;  // lets a held script go on
  void PatchSpec(const json& spec) const;
  void Delete() const;
  std::string Describe() const;  // status, children and events for a failed test

 private:
  kube::ObjectKey key_;
  std::string uid_;
};

}  // namespace hetero::testing
