#include "operator/plan/managed_by.h"

#include "api/labels.h"

namespace hetero::plan {

Manager ManagerOf(const api::Spec& spec) {
  const std::string& manager = spec.manager();
  if (manager.empty() || manager == api::kManagedBySelf) return Manager::kOperator;
  return manager == api::kManagedByMultiKueue ? Manager::kMultiKueue : Manager::kAnother;
}

}  // namespace hetero::plan
