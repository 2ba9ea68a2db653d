#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/head/job_record.h"

namespace hetero::head {

// Who belongs to a job, read once from its manifest: the rank of every trainer (GPUWorker roles in
// manifest order, then replica, then local index; fixed for the job) and the CPU workers of each
// role. There may come to be more CPU workers than the manifest says: on a cluster their number is
// changed while the job runs, and this head's manifest is that of the attempt's beginning.
class RolePlan {
 public:
  struct Role {
    std::string name;
    bool trainer = false;
    int32_t desired = 0;   // replicas
    int32_t required = 0;  // replicas that the first generation waits for
    int32_t limit = 0;     // indices are below it; of CPU workers, of those known so far
    int32_t local_ranks = 1;
    int32_t first_rank = 0;  // trainers
  };

  explicit RolePlan(const api::Spec& spec);

  // In manifest order, without the head's.
  const std::vector<Role>& roles() const { return roles_; }
  int32_t world_size() const { return world_size_; }

  // A CPU worker of that index has joined `role`, which is one of this plan's.
  void MakeRoom(const Role& role, int32_t index);

  // The role of `identity`; kNotFound names what the manifest does not have.
  absl::StatusOr<const Role*> Find(const v1::Identity& identity) const;
  // Indices that may be in use are below it: the operator makes more CPU workers than the manifest
  // says when a user asks for more.
  static int32_t MostReplicas(const Role& role);
  // The place of the member of that name ("cpu-0", "gpu-1.3"); empty: the job has none.
  std::optional<MemberKey> KeyOf(const std::string& name) const;
  bool Has(const std::string& name) const { return KeyOf(name).has_value(); }
  bool IsTrainer(const std::string& name) const;

 private:
  std::vector<Role> roles_;
  int32_t world_size_ = 0;
};

// "cpu-0"; "gpu-1.3" when replicas of the role train several ranks.
std::string MemberName(const RolePlan::Role& role, int32_t index, int32_t local_rank);

}  // namespace hetero::head
