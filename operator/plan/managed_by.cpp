#include "operator/plan/managed_by.h"

#include "operator/children/names.h"

namespace hetero::plan {

bool IsOurs(const ObservedJob& job) {
  const std::string& manager = job.job.spec.run_policy.managed_by;
  return !job.deleting && (manager.empty() || manager == children::kManagedBySelf);
}

}  // namespace hetero::plan
