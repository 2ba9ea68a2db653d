#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "operator/plan/observed.h"
#include "operator/plan/plan.h"
#include "operator/reconcile/effects.h"
#include "operator/reconcile/job_memory.h"

namespace hetero::reconcile {

// `wait` becomes the sooner of the two.
void Sooner(std::optional<base::Duration>& wait, std::optional<base::Duration> other);

// Carries out the effects of a plan whose status has been written, and remembers what came of them.
// Safe for different jobs at once.
class PlanExecutor {
 public:
  PlanExecutor(kube::Client& client, base::Clock& clock, const kube::Store<plan::ObservedJob>& jobs,
               Heads& heads, const OperatorIdentity& identity, const children::Settings& settings,
               int parallelism);

  // Stage after stage, up to the first that does not succeed; after one of creates, what Kueue is
  // to be told is told nevertheless. Of a large plan only a part: then `again` is at once, and the
  // queue lets other jobs have their turn first. An error is a passing one, for the queue's
  // backoff; whatever else wants another pass brings `again` forward.
  absl::Status CarryOut(const std::string& key, const plan::Plan& plan,
                        const plan::Observed& observed, JobMemory& memory,
                        std::optional<base::Duration>& again, std::stop_token stop);

 private:
  base::Duration CreatesHeld(std::span<const plan::Effect> effects, const plan::ObservedJob& job,
                             const JobMemory& memory) const;
  std::vector<Outcome> Carry(const plan::Stage& stage, const plan::ObservedJob& job,
                             FullRoles& full, size_t& left, const std::stop_token& stop);
  void KeepFull(const plan::ObservedJob& job, JobMemory& memory, FullRoles& full) const;
  void Remember(const Outcome& outcome, const plan::Observed& observed, JobMemory& memory);
  absl::Status Judge(const plan::Stage& stage, const std::vector<Outcome>& outcomes,
                     const plan::ObservedJob& job, JobMemory& memory,
                     std::optional<plan::CreateError>& refused,
                     std::optional<base::Duration>& again) const;
  void Tell(const std::string& key, std::optional<plan::CreateError> refused, bool made,
            JobMemory& memory, std::optional<base::Duration>& again) const;

  base::Clock& clock_;
  EffectRunner effects_;
};

}  // namespace hetero::reconcile
