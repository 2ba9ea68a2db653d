#include "operator/reconcile/plan_executor.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"

namespace hetero::reconcile {
namespace {

// Of a large stage so many are sent before it is looked at what came of them: a full quota then
// refuses these and not 10,000.
constexpr size_t kBatch = 200;

// A create that only fails for the moment is not worth a word in the status at once.
constexpr int kFailedCreatesToTell = 3;
constexpr base::Duration kUsualGrace = std::chrono::seconds(30);

bool Creates(const plan::Stage& stage) {
  return std::any_of(stage.begin(), stage.end(), [](const plan::Effect& effect) {
    return std::holds_alternative<plan::CreateChild>(effect) ||
           std::holds_alternative<plan::CreatePod>(effect) ||
           std::holds_alternative<plan::CreateTrust>(effect);
  });
}

bool AllDone(const std::vector<Outcome>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const Outcome& outcome) { return outcome.ok(); });
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
base::Duration PlanExecutor::CreatesHeld(const plan::Stage& stage, const plan::ObservedJob& job,
                                         const JobMemory& memory) const {
  if (!Creates(stage) || memory.refused_generation != job.generation) return {};
  return memory.create_from - clock_.Now();
}

absl::Status PlanExecutor::CarryOut(const std::string& key, const plan::Plan& plan,
                                    const plan::Observed& observed, JobMemory& memory,
                                    std::optional<base::Duration>& again, std::stop_token stop) {
  bool creates = false;
  for (const plan::Stage& stage : plan.stages) {
    if (const base::Duration held = CreatesHeld(stage, *observed.job, memory);
        held > base::Duration::zero()) {
      Sooner(again, held);
      return absl::OkStatus();
    }
    creates |= Creates(stage);
    for (size_t from = 0; from < stage.size(); from += kBatch) {
      const std::span batch = std::span(stage).subspan(from, std::min(kBatch, stage.size() - from));
      const std::vector<Outcome> outcomes = effects_.Run(batch, *observed.job, stop);
      for (const Outcome& outcome : outcomes) {
        Remember(outcome, observed, memory);
        // The Service's address is in the reply: no need to wait for the watch.
        if (outcome.object != nullptr) Sooner(again, base::Duration::zero());
      }
      const auto pods = std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
        return outcome.pod != nullptr;
      });
      if (pods > 0) log::Debug("pods created", {{"job", key}, {"count", pods}});
      if (AllDone(outcomes)) continue;
      return Judge(key, Creates(stage), outcomes, *observed.job, memory, again);
    }
  }
  if (creates) {
    // The condition that told of the trouble is to be corrected.
    if (memory.create_error) Sooner(again, base::Duration::zero());
    memory.create_error.reset();
    memory.failed_creates = 0;
  }
  return absl::OkStatus();
}

void PlanExecutor::Remember(const Outcome& outcome, const plan::Observed& observed,
                            JobMemory& memory) {
  const base::Instant now = clock_.Now();
  const base::WallTime gone_by =
      clock_.WallNow() +
      (outcome.grace_seconds ? std::chrono::seconds(*outcome.grace_seconds) : kUsualGrace);
  if (outcome.pod != nullptr) memory.expectations.PodCreated(outcome.pod, now);
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
absl::Status PlanExecutor::Judge(const std::string& key, bool creates,
                                 const std::vector<Outcome>& outcomes, const plan::ObservedJob& job,
                                 JobMemory& memory, std::optional<base::Duration>& again) const {
  const base::Instant now = clock_.Now();
  std::optional<plan::CreateError> refused;
  absl::Status failed;
  for (const Outcome& outcome : outcomes) {
    if (outcome.given_up) return absl::OkStatus();
    Sooner(again, outcome.again_after);
    if (failed.ok()) failed = outcome.status;
    if (!outcome.create_error) continue;
    memory.create_from =
        std::max(memory.create_from, now + outcome.again_after.value_or(base::Duration::zero()));
    memory.refused_generation = job.generation;
    if (!refused || outcome.create_error->kind > refused->kind) refused = outcome.create_error;
  }
  if (!failed.ok() && creates && ++memory.failed_creates >= kFailedCreatesToTell && !refused) {
    refused = plan::CreateError{.message = std::string(failed.message())};
  }
  if (refused && (!memory.create_error || memory.create_error->message != refused->message)) {
    log::Warning("objects cannot be created", {{"job", key}, {"error", refused->message}});
    memory.create_error = refused;
    Sooner(again, base::Duration::zero());
  }
  return failed;
}

}  // namespace hetero::reconcile
