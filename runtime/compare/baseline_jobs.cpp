#include "runtime/compare/baseline_jobs.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/manifest.h"

namespace hetero::compare {
namespace {

bool IsCpuRole(const api::Role& role) { return role.type == api::RoleType::kCpuWorker; }

bool HasCpuWorkers(const api::HeteroTrainingJob& job) {
  return std::any_of(job.spec.roles.begin(), job.spec.roles.end(), [](const api::Role& role) {
    return IsCpuRole(role) && std::max(role.replicas, role.max_replicas.value_or(0)) > 0;
  });
}

}  // namespace

absl::StatusOr<BaselineJobs> BaselineJobsOf(const api::HeteroTrainingJob& job, int64_t steps) {
  if (!HasCpuWorkers(job)) {
    return absl::InvalidArgumentError(
        "spec.roles: the job has no CPU workers to leave out; give it a role of type CPUWorker "
        "with replicas of at least 1");
  }
  BaselineJobs jobs{.alone = job, .together = job};
  for (api::HeteroTrainingJob* one : {&jobs.alone, &jobs.together}) {
    api::Training& training = one->spec.training;
    training.max_steps = std::min(training.max_steps.value_or(steps), steps);
    training.checkpoint.reset();
  }
  std::erase_if(jobs.alone.spec.roles, IsCpuRole);
  const api::ManifestResult valid = api::ParseJobDocument(api::ToJson(jobs.alone));
  if (!valid.errors.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "without its CPU workers the job is not valid:\n", api::FormatErrors(valid.errors)));
  }
  return jobs;
}

}  // namespace hetero::compare
