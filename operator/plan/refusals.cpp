#include "operator/plan/refusals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "api/unsupported_fields.h"
#include "operator/children/children.h"
#include "operator/plan/accounting.h"
#include "operator/plan/managed_by.h"
#include "operator/plan/workload.h"

namespace hetero::plan {
namespace {

std::string TooManyPods(const Pass& pass) {
  int64_t most = 0;
  for (const api::Role& role : pass.spec.roles) {
    const bool scales =
        pass.spec.autoscaling == api::Switch::kEnabled && role.type == api::RoleType::kCpuWorker;
    most +=
        scales ? std::max(role.replicas, role.max_replicas.value_or(role.replicas)) : role.replicas;
  }
  if (most <= pass.settings.max_pods) return "";
  return absl::StrCat("spec.roles: the job has up to ", most,
                      " pods, and this operator makes at most ", pass.settings.max_pods,
                      " for one job; ask for fewer, or have its "
                      "administrator raise --max-pods-per-job (jobs.maxPods in the chart)");
}

std::string Queue(const Pass& pass) {
  const bool off = pass.seen.queues.support == ObservedQueues::Support::kOff;
  if (QueueOf(pass).empty()) {
    if (PrebuiltWorkloadOf(pass).empty()) return "";
    return absl::StrCat("metadata.labels[", api::kPrebuiltWorkloadLabel,
                        "]: a Workload is taken over by a job in a queue alone; name the queue by ",
                        api::kQueueLabel, ", or remove the label");
  }
  if (!off) return "";
  return absl::StrCat("metadata.labels[", api::kQueueLabel,
                      "]: this operator is not set up for queues; have its administrator set "
                      "kueue.enabled in the chart (--kueue), or remove the label");
}

std::string NoZones(const Pass& pass) {
  const std::optional<api::PodPlacement>& placement = pass.spec.placement;
  if (!placement || placement->zone != api::ZoneChoice::kSame || pass.seen.zones.value_or(true)) {
    return "";
  }
  return absl::StrCat("spec.placement.zone: Same needs nodes with the label ", api::kZoneLabel,
                      ", and no node of this cluster has it; label them, or choose Prefer");
}

std::string Gang(const Pass& pass) {
  if (!pass.spec.scheduling || pass.spec.scheduling->gang == api::GangScheduler::kNone) return "";
  const char* name = children::NameOf(pass.spec.scheduling->gang);
  if (!QueueOf(pass).empty()) {
    return absl::StrCat("spec.scheduling.gang: ", name, " and metadata.labels[", api::kQueueLabel,
                        "] exclude each other, since pods have one scheduler; remove one of them");
  }
  if (pass.seen.gang.enabled) return "";
  return absl::StrCat("spec.scheduling.gang: this operator is not set up for ", name,
                      "; have its administrator add it to scheduling.gangs in the chart (--gangs), "
                      "or remove the field");
}

std::string NoPrice(const Pass& pass) {
  if (pass.policy.max_dollars.empty() || KeepsAccount(pass.object, pass.settings)) return "";
  return "runPolicy.maxDollars: nothing of the job has a price; state spec.roles[].pricePerHour, "
         "have the operator's administrator give it a price sheet (prices in the chart, "
         "--price-sheet), or remove the field";
}

std::string NoCuda(const Pass& pass, size_t role_index) {
  const api::Role& role = pass.spec.roles[role_index];
  const int32_t gpus = role.gpus_per_replica.value_or(1);
  if (role.type != api::RoleType::kGpuWorker || gpus == 0 || pass.settings.trainer_has_cuda ||
      children::NamesRuntimeImage(role)) {
    return "";
  }
  return absl::StrCat(
      "spec.roles[", role_index, "].gpusPerReplica: ", gpus,
      " asks for GPUs, and the trainer image ", pass.settings.trainer_image,
      " has no CUDA; set it to 0 to train on the CPU, name an image "
      "with CUDA in the role's template, or have the operator's administrator configure one "
      "(jobs.trainerImage and jobs.trainerCuda in the chart)");
}

}  // namespace

std::vector<std::string> Refusals(const Pass& pass) {
  std::vector<std::string> refusals;
  const auto add = [&refusals](std::string refusal) {
    if (!refusal.empty()) refusals.push_back(std::move(refusal));
  };
  for (const api::FieldError& error : api::UnsupportedFields(pass.object.job)) {
    add(absl::StrCat(error.path, ": ", error.reason));
  }
  for (const children::TemplateError& error : children::CheckTemplates(pass.object.job)) {
    add(absl::StrCat(error.path, ": ", error.reason));
  }
  add(Queue(pass));
  // What is about nodes and images is the other cluster's to judge.
  const bool elsewhere = ManagerOf(pass.spec) == Manager::kMultiKueue;
  if (!elsewhere) add(NoZones(pass));
  add(Gang(pass));
  if (!elsewhere) add(NoPrice(pass));
  add(TooManyPods(pass));
  for (size_t i = 0; i < pass.spec.roles.size() && !elsewhere; ++i) add(NoCuda(pass, i));
  return refusals;
}

}  // namespace hetero::plan
