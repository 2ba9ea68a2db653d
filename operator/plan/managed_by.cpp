#include "operator/plan/managed_by.h"

#include "api/labels.h"

namespace hetero::plan {

bool IsOurs(const ObservedJob& job) {
  const std::string& manager = job.job.spec.run_policy.managed_by;
  return !job.deleting && (manager.empty() || manager == api::kManagedBySelf);
}

}  // namespace hetero::plan
