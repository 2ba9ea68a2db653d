#include "runtime/head/role_plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/role_type.h"

namespace hetero::head {
namespace {

// All of it is a number; not negative.
std::optional<int32_t> ParseIndex(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

int32_t RolePlan::MostReplicas(const Role& role) {
  return role.trainer ? role.limit : api::kMostReplicas;
}

RolePlan::RolePlan(const api::Spec& spec) {
  for (const api::Role& role : spec.roles) {
    switch (role.type) {
      case api::RoleType::kHead:
        break;
      case api::RoleType::kCpuWorker: {
        const int32_t required = role.min_replicas.value_or(role.replicas);
        const int32_t limit = std::max(role.replicas, role.max_replicas.value_or(role.replicas));
        roles_.push_back({.name = role.name,
                          .trainer = false,
                          .desired = role.replicas,
                          .required = std::min(required, role.replicas),
                          .limit = limit});
        break;
      }
      case api::RoleType::kGpuWorker: {
        const int32_t local_ranks = role.ranks_per_replica();
        roles_.push_back({.name = role.name,
                          .trainer = true,
                          .desired = role.replicas,
                          .required = role.replicas,
                          .limit = role.replicas,
                          .local_ranks = local_ranks,
                          .first_rank = world_size_});
        world_size_ += role.replicas * local_ranks;
        break;
      }
    }
  }
}

void RolePlan::MakeRoom(const Role& role, int32_t index) {
  for (Role& known : roles_) {
    if (known.name != role.name || known.trainer || index < known.limit) continue;
    known.limit = known.desired = index + 1;
  }
}

absl::StatusOr<const RolePlan::Role*> RolePlan::Find(const v1::Identity& identity) const {
  const auto role = std::find_if(roles_.begin(), roles_.end(),
                                 [&](const Role& r) { return r.name == identity.role(); });
  if (role == roles_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "the manifest has no CPUWorker or GPUWorker role named '", identity.role(), "'"));
  }
  const char* type = role->trainer ? api::kGpuWorkerType : api::kCpuWorkerType;
  if (!identity.role_type().empty() && identity.role_type() != type) {
    return absl::NotFoundError(absl::StrCat("role '", role->name, "' is a ", type,
                                            " in the manifest, not a ", identity.role_type()));
  }
  if (identity.index() < 0 || identity.index() >= MostReplicas(*role)) {
    return absl::NotFoundError(absl::StrCat("role '", role->name, "' has no replica ",
                                            identity.index(), ": indices go from 0 to ",
                                            MostReplicas(*role) - 1));
  }
  if (identity.local_rank() < 0 || identity.local_rank() >= role->local_ranks) {
    return absl::NotFoundError(absl::StrCat("a replica of role '", role->name, "' has ",
                                            role->local_ranks, " local ranks, ",
                                            identity.local_rank(), " is not one of them"));
  }
  return &*role;
}

std::optional<MemberKey> RolePlan::KeyOf(const std::string& name) const {
  for (const Role& role : roles_) {
    if (!name.starts_with(role.name + "-")) continue;
    const std::string_view numbers = std::string_view(name).substr(role.name.size() + 1);
    const size_t dot = role.local_ranks > 1 ? numbers.find('.') : numbers.size();
    if (dot == std::string_view::npos) continue;
    const std::optional<int32_t> index = ParseIndex(numbers.substr(0, dot));
    const std::optional<int32_t> local =
        role.local_ranks > 1 ? ParseIndex(numbers.substr(dot + 1)) : 0;
    if (!index || !local || *index >= MostReplicas(role) || *local >= role.local_ranks) continue;
    if (MemberName(role, *index, *local) == name) return MemberKey{role.name, *index, *local};
  }
  return std::nullopt;
}

bool RolePlan::IsTrainer(const std::string& name) const {
  const std::optional<MemberKey> key = KeyOf(name);
  return key && std::any_of(roles_.begin(), roles_.end(), [&](const Role& role) {
           return role.trainer && role.name == key->role;
         });
}

std::string MemberName(const RolePlan::Role& role, int32_t index, int32_t local_rank) {
  std::string name = absl::StrCat(role.name, "-", index);
  if (role.local_ranks > 1) absl::StrAppend(&name, ".", local_rank);
  return name;
}

}  // namespace hetero::head
