#include "api/defaults.h"

#include "api/operators.h"

namespace hetero::api {
namespace {

template <typename T>
void Fill(std::optional<T>& field, T value) {
  if (!field.has_value()) field = value;
}

void DefaultRole(Role& role) {
  switch (role.type) {
    case RoleType::kHead:
      break;
    case RoleType::kCpuWorker:
      Fill(role.min_replicas, role.replicas);
      Fill(role.max_replicas, role.replicas);
      break;
    case RoleType::kGpuWorker:
      Fill(role.gpus_per_replica, 1);
      break;
  }
}

}  // namespace

void Default(HeteroTrainingJob& job) {
  for (OperatorSpec& op : job.spec.pipeline) FillDefaults(op);
  for (Role& role : job.spec.roles) DefaultRole(role);
}

}  // namespace hetero::api
