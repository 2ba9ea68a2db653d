#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What a plan asks for, as values. operator/reconcile carries it out.
namespace hetero::plan {

// The job's children, but for the Secret, which the operator may not read.
enum class ChildKind { kPod, kService, kConfigMap, kNetworkPolicy };

struct CreateChild {
  ChildKind kind = ChildKind::kPod;
  std::string name;
  nlohmann::json object;
};

// The authority and the leaves of the job: the Secret, then the ConfigMap, which thus proves that
// the Secret exists. With network.tls Disabled the ConfigMap alone.
struct CreateTrust {};

// Only the object `uid`; none if another one has its name now.
struct DeleteChild {
  ChildKind kind = ChildKind::kPod;
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_seconds;  // 0 forces; none: as the pod says
};

struct DeletePods {};  // all of the job, one call
struct DeleteSecret {};
struct DeleteJob {};  // the job's own object, background propagation

// Tells the head that a member's process is gone.
struct ReportExit {
  std::string role;
  int32_t index = 0;
  int64_t incarnation = 0;
  int32_t exit_code = 0;
  int32_t signal = 0;
  std::string message;
  bool replaced = false;  // another process will take its place
};

// Tells the head that the job has failed, so that it ends its members and writes the report.
struct StopHead {
  std::string failure;  // the condition's reason
  std::string reason;   // and its message
};

using Effect = std::variant<CreateChild, CreateTrust, DeleteChild, DeletePods, DeleteSecret,
                            DeleteJob, ReportExit, StopHead>;

// Effects that run in parallel.
using Stage = std::vector<Effect>;

}  // namespace hetero::plan
