#include "operator/plan/elastic.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "operator/children/names.h"
#include "operator/plan/conditions.h"
#include "operator/plan/workload.h"
#include "operator/plan/workload_status.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using namespace workload_condition;

struct Replica {
  int32_t role = 0;  // its place in spec.roles
  int32_t index = 0;
};

// By the names of their Workloads.
std::map<std::string, Replica> WantedBeyond(const Pass& pass, const ObservedWorkload& gang) {
  std::map<std::string, Replica> wanted;
  if (!pass.spec.scheduling || pass.spec.scheduling->elastic_priority_class.empty()) return wanted;
  for (size_t i = 0; i < pass.spec.roles.size(); ++i) {
    const api::Role& role = pass.spec.roles[i];
    if (role.type != api::RoleType::kCpuWorker) continue;
    for (int32_t index = gang.CountOf(role.name); index < pass.Wanted(role); ++index) {
      wanted[children::ElasticWorkloadName(pass.metadata, role.name, index)] = {
          static_cast<int32_t>(i), index};
    }
  }
  return wanted;
}

// Its pod has the same name.
const ObservedPod* PodOf(const Pass& pass, const ObservedWorkload& workload) {
  for (const auto& pod : pass.seen.pods) {
    if (pod->name == workload.name) return pod.get();
  }
  return nullptr;
}

void Keep(Pass& pass, const std::shared_ptr<const ObservedWorkload>& workload, Stage& stage) {
  const ObservedPod* pod = PodOf(pass, *workload);
  if (workload->Is(workload_condition::kFinished)) {
    if (pod == nullptr) stage.push_back(Deleted(*workload));
  } else if (workload->evicted() && workload->holds_quota && pod == nullptr) {
    stage.push_back(Released(pass, workload));
  } else if (workload->admitted() && pod != nullptr && pod->ready && !workload->Is(kPodsReady)) {
    UpdateWorkload update{.read = workload};
    update.conditions.push_back(
        Stamped(pass, *workload, kPodsReady, true, "Started", "The CPU worker is ready"));
    stage.push_back(std::move(update));
  }
}

void Complain(Pass& pass, const absl::Status& problem) {
  SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kAdmitted,
               std::string(problem.message()));
}

}  // namespace

void KeepElasticWorkloads(Pass& pass) {
  const auto gang = GangWorkload(pass);
  if (gang == nullptr) return;
  std::map<std::string, Replica> wanted = WantedBeyond(pass, *gang);
  Stage stage;
  for (const auto& workload : pass.seen.workloads) {
    if (workload == gang) continue;
    const bool keep = wanted.erase(workload->name) > 0;
    if (workload->deleting) continue;
    if (keep) {
      Keep(pass, workload, stage);
    } else if (PodOf(pass, *workload) == nullptr) {
      stage.push_back(Deleted(*workload));
    }
  }
  if (WasTrue(pass, ConditionType::kRunning)) {
    for (const auto& [name, replica] : wanted) {
      absl::StatusOr<WorkloadClaim> claim = ElasticClaim(pass, replica.role, replica.index);
      if (!claim.ok()) {
        Complain(pass, claim.status());
        break;
      }
      stage.push_back(CreateWorkload{std::make_shared<WorkloadClaim>(*std::move(claim))});
    }
  }
  pass.AddStage(std::move(stage));
}

bool DeleteElasticWorkloads(Pass& pass) {
  const auto gang = GangWorkload(pass);
  Stage stage;
  bool left = false;
  for (const auto& workload : pass.seen.workloads) {
    if (workload == gang) continue;
    left = true;
    if (!workload->deleting) stage.push_back(Deleted(*workload));
  }
  pass.AddStage(std::move(stage));
  return left;
}

}  // namespace hetero::plan
