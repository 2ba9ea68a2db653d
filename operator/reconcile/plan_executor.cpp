#include "operator/reconcile/plan_executor.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"

namespace hetero::reconcile {
namespace {

// A create that only fails for the moment is not worth a word in the status at once.
constexpr int kFailedCreatesToTell = 3;
constexpr base::Duration kUsualGrace = std::chrono::seconds(30);
// Of one job before others have their turn, and before it is looked at what came of them: about a
// second of the client's default rate. A full quota then refuses these and not 10,000.
constexpr size_t kEffectsOfAPass = 200;
constexpr base::Duration kAfterTheOthers = std::chrono::milliseconds(1);

bool Creates(std::span<const plan::Effect> effects) {
  return std::any_of(effects.begin(), effects.end(), [](const plan::Effect& effect) {
    return std::holds_alternative<plan::CreateChild>(effect) ||
           std::holds_alternative<plan::CreatePod>(effect) ||
           std::holds_alternative<plan::CreatePodGroup>(effect) ||
           std::holds_alternative<plan::CreateTrust>(effect);
  });
}

// Such a stage may lift the hold of a refused Workload.
bool Claims(std::span<const plan::Effect> effects) {
  return std::any_of(effects.begin(), effects.end(), [](const plan::Effect& effect) {
    return std::holds_alternative<plan::CreateWorkload>(effect) ||
           std::holds_alternative<plan::AdoptWorkload>(effect);
  });
}

// What Kueue is told waits for no pod that is still to be made.
bool OfWorkloadsAlone(std::span<const plan::Effect> effects) {
  return std::all_of(effects.begin(), effects.end(), [](const plan::Effect& effect) {
    if (const auto* deletion = std::get_if<plan::DeleteChild>(&effect)) {
      return deletion->kind == plan::ChildKind::kWorkload;
    }
    return std::holds_alternative<plan::CreateWorkload>(effect) ||
           std::holds_alternative<plan::UpdateWorkload>(effect);
  });
}

// As many of `stage` as the pass may still carry out. What is told to the head of a process goes
// with the deletion before it, which is not planned a second time.
std::span<const plan::Effect> Part(std::span<const plan::Effect> stage, size_t left) {
  size_t count = std::min(stage.size(), left);
  while (count > 0 && count < stage.size() &&
         std::holds_alternative<plan::ReportExit>(stage[count])) {
    ++count;
  }
  return stage.first(count);
}

// Nothing else is to be tried in this pass.
bool Stopped(const std::vector<Outcome>& outcomes) {
  return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
    return outcome.given_up || outcome.put_off || NobodyAnswers(outcome.status);
  });
}

}  // namespace

void Sooner(std::optional<base::Duration>& wait, std::optional<base::Duration> other) {
  if (other) wait = std::min(wait.value_or(*other), *other);
}

PlanExecutor::PlanExecutor(kube::Client& client, base::Clock& clock,
                           const kube::Store<plan::ObservedJob>& jobs, Heads& heads,
                           const OperatorIdentity& identity, const children::Settings& settings,
                           int parallelism)
    : clock_(clock), effects_(client, clock, jobs, heads, identity, settings, parallelism) {}

// How long what the API has refused is not to be tried again; zero: nothing holds this stage.
base::Duration PlanExecutor::CreatesHeld(std::span<const plan::Effect> effects,
                                         const plan::ObservedJob& job,
                                         const JobMemory& memory) const {
  if (!Creates(effects) || memory.refused_generation != job.generation) return {};
  return memory.create_from - clock_.Now();
}

absl::Status PlanExecutor::CarryOut(const std::string& key, const plan::Plan& plan,
                                    const plan::Observed& observed, JobMemory& memory,
                                    std::optional<base::Duration>& again, std::stop_token stop) {
  const plan::ObservedJob& job = *observed.job;
  bool creates = false;
  bool incomplete = false;  // creates were refused or held
  absl::Status failed;
  std::optional<plan::CreateError> refused;  // the gravest
  FullRoles full(job.job.spec.roles.size());
  KeepFull(job, memory, full);
  size_t left = kEffectsOfAPass;
  for (const plan::Stage& stage : plan.stages) {
    if (incomplete && !OfWorkloadsAlone(stage)) continue;
    if (const base::Duration held = CreatesHeld(stage, job, memory);
        held > base::Duration::zero()) {
      Sooner(again, held);
      incomplete = true;
      continue;
    }
    if (incomplete) left = std::max<size_t>(left, 1);  // what is said to Kueue is not much
    const std::vector<Outcome> outcomes = Carry(stage, job, full, left, stop);
    int pods_created = 0;
    for (const Outcome& outcome : outcomes) {
      Remember(outcome, observed, memory);
      pods_created += outcome.pod != nullptr;
      // The Service's address is in the reply: no need to wait for the watch.
      if (outcome.object != nullptr) Sooner(again, base::Duration::zero());
    }
    creates |= Creates(stage) || Claims(stage);
    if (pods_created > 0) log::Debug("pods created", {{"job", key}, {"count", pods_created}});
    const bool done = std::all_of(outcomes.begin(), outcomes.end(),
                                  [](const Outcome& outcome) { return outcome.ok(); });
    if (!done) failed.Update(Judge(stage, outcomes, job, memory, refused, again));
    if (outcomes.size() < stage.size() && failed.ok()) Sooner(again, kAfterTheOthers);
    if (done && outcomes.size() == stage.size()) continue;
    incomplete = true;
    if (!Creates(stage) || Stopped(outcomes)) break;
  }
  Tell(key, std::move(refused), creates && !incomplete, memory, again);
  return failed;
}

// Outcomes of the first effects of `stage`, for which `left` has room. A quota that is full for one
// role ends none of the others: only what was tried counts.
std::vector<Outcome> PlanExecutor::Carry(const plan::Stage& stage, const plan::ObservedJob& job,
                                         FullRoles& full, size_t& left,
                                         const std::stop_token& stop) {
  std::vector<Outcome> outcomes;
  while (outcomes.size() < stage.size()) {
    const auto part = Part(std::span(stage).subspan(outcomes.size()), left);
    if (part.empty()) break;
    std::vector<Outcome> more = effects_.RunTogether(part, job, full, stop);
    const auto tried = std::count_if(more.begin(), more.end(),
                                     [](const Outcome& outcome) { return !outcome.hopeless; });
    left -= std::min(left, static_cast<size_t>(tried));
    const bool stopped = Stopped(more);
    std::move(more.begin(), more.end(), std::back_inserter(outcomes));
    if (stopped) break;
  }
  return outcomes;
}

// Roles whose pods a quota had no room for a moment ago.
void PlanExecutor::KeepFull(const plan::ObservedJob& job, JobMemory& memory,
                            FullRoles& full) const {
  if (memory.refused_generation != job.generation) memory.full_until.clear();
  const base::Instant now = clock_.Now();
  std::erase_if(memory.full_until, [now](const auto& entry) { return entry.second <= now; });
  for (const auto& [role, until] : memory.full_until) {
    if (role < full.size()) full[role] = true;
  }
}

void PlanExecutor::Remember(const Outcome& outcome, const plan::Observed& observed,
                            JobMemory& memory) {
  const base::Instant now = clock_.Now();
  const base::WallTime gone_by =
      clock_.WallNow() +
      (outcome.grace_seconds ? std::chrono::seconds(*outcome.grace_seconds) : kUsualGrace);
  if (outcome.pod != nullptr) memory.expectations.PodCreated(outcome.pod, now);
  if (outcome.workload != nullptr) {
    memory.expectations.WorkloadWritten(outcome.workload, outcome.replaced_version, now);
  }
  if (outcome.going != nullptr) memory.expectations.StillThere(outcome.going, now);
  if (outcome.object != nullptr) {
    memory.expectations.ObjectCreated(outcome.kind, outcome.object, now);
  }
  if (!outcome.deleted_uid.empty()) memory.expectations.Deleted(outcome.deleted_uid, gone_by, now);
  if (outcome.pods_deleted) {
    for (const auto& pod : observed.pods) memory.expectations.Deleted(pod->uid, gone_by, now);
  }
  if (outcome.job_deleted) memory.deleted_until = now + Expectations::kPatience;
}

// What a stage that did not succeed leads to: the gravest refusal is kept for the status, the
// soonest moment for another try is asked for, and a passing error is left to the queue's backoff.
absl::Status PlanExecutor::Judge(const plan::Stage& stage, const std::vector<Outcome>& outcomes,
                                 const plan::ObservedJob& job, JobMemory& memory,
                                 std::optional<plan::CreateError>& refused,
                                 std::optional<base::Duration>& again) const {
  const base::Instant now = clock_.Now();
  absl::Status failed;
  bool any_refused = false;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.given_up) return absl::OkStatus();
    if (outcome.put_off) Sooner(again, kAfterTheOthers);
    Sooner(again, outcome.again_after);
    failed.Update(outcome.status);
    const auto* pod = std::get_if<plan::CreatePod>(&stage[i]);
    if (outcome.hopeless && pod != nullptr) {
      const auto held = memory.full_until.find(static_cast<size_t>(pod->role));
      if (held != memory.full_until.end()) Sooner(again, held->second - now);
    }
    if (!outcome.create_error) continue;
    any_refused = true;
    if (!outcome.of_workload) {
      const base::Instant until = now + outcome.again_after.value_or(base::Duration::zero());
      const bool quota = outcome.create_error->kind == plan::CreateError::Kind::kQuotaExceeded;
      if (memory.refused_generation != job.generation) memory.full_until.clear();
      memory.refused_generation = job.generation;
      if (quota && pod != nullptr) {
        memory.full_until[static_cast<size_t>(pod->role)] = until;
      } else {
        memory.create_from = std::max(memory.create_from, until);
      }
    }
    if (!refused || outcome.create_error->kind > refused->kind) refused = outcome.create_error;
  }
  if (!failed.ok() && Creates(stage) && ++memory.failed_creates >= kFailedCreatesToTell &&
      !any_refused && !refused) {
    refused = plan::CreateError{.message = std::string(failed.message())};
  }
  return failed;
}

// What the status is to say of creates: why they are refused, or that all has been made.
void PlanExecutor::Tell(const std::string& key, std::optional<plan::CreateError> refused, bool made,
                        JobMemory& memory, std::optional<base::Duration>& again) const {
  if (made) {
    // The condition that told of the trouble is to be corrected.
    if (memory.create_error) Sooner(again, base::Duration::zero());
    memory.create_error.reset();
    memory.failed_creates = 0;
  }
  if (!refused) return;
  const std::optional<plan::CreateError>& told = memory.create_error;
  // While pods are held, what else is refused does not take the place of why.
  if (told && !memory.full_until.empty() && told->kind > refused->kind) return;
  if (told && told->message == refused->message) return;
  log::Warning("objects cannot be created", {{"job", key}, {"error", refused->message}});
  memory.create_error = std::move(refused);
  Sooner(again, base::Duration::zero());
}

}  // namespace hetero::reconcile
