#include "tests/unit/operator/plan/history.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/labels.h"
#include "operator/plan/autoscale.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;

constexpr int kDisturbedSteps = 25;
constexpr int kCalmSteps = 150;

bool Contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool Suspends(const api::JobStatus& status) {
  const api::Condition* condition = status.Find(ConditionType::kSuspended);
  return condition != nullptr &&
         (condition->status == api::ConditionStatus::kTrue || condition->reason == "Suspending" ||
          condition->reason == "SpecChanged");
}

// The job waits in a queue, and nothing of it is to run.
bool Waits(const api::JobStatus& status) {
  const api::Condition* condition = status.Find(ConditionType::kQueued);
  return condition != nullptr &&
         (condition->status == api::ConditionStatus::kTrue || condition->reason == "KueueMissing");
}

// How the same pod had ended before it was found silent, told late by its kubelet.
bool Completes(const std::optional<api::FirstFailure>& is, const api::FirstFailure& was) {
  return was.reason == "Lost" && !was.exit_code && is && is->exit_code && is->pod == was.pod &&
         is->node == was.node && is->time < was.time;
}

std::string Describe(const Effect& effect) {
  struct Words {
    std::string operator()(const CreateChild& e) const { return "create " + e.name; }
    std::string operator()(const CreatePod& e) const {
      return absl::StrCat("create pod ", e.index, " of role ", e.role, ", attempt ",
                          e.origin->attempt);
    }
    std::string operator()(const CreateTrust&) const { return "create trust"; }
    std::string operator()(const CreateWorkload& e) const { return "create " + e.claim->name; }
    std::string operator()(const CreatePodGroup& e) const { return "create " + e.gang.group; }
    std::string operator()(const AdoptWorkload& e) const { return "adopt " + e.claim->name; }
    std::string operator()(const UpdateWorkload& e) const {
      return absl::StrCat(e.release ? "release " : "update ", e.read->name);
    }
    std::string operator()(const DeleteChild& e) const {
      return absl::StrCat("delete ", e.name, " ", e.uid);
    }
    std::string operator()(const DeletePods&) const { return "delete pods"; }
    std::string operator()(const DeleteSecret&) const { return "delete secret"; }
    std::string operator()(const DeleteJob&) const { return "delete job"; }
    std::string operator()(const ReportExit& e) const {
      return absl::StrCat("report exit of ", e.role, "-", e.index);
    }
    std::string operator()(const StopHead& e) const { return "tell the head: " + e.failure; }
    std::string operator()(const WarnHead& e) const {
      return "warn the head: " + std::to_string(e.notices.size());
    }
  };
  return std::visit(Words(), effect);
}

}  // namespace

History::History(int seed, bool traced) : random_(seed), traced_(traced) {
  Job job = RandomJob();
  ganged_ = seed % 4 == 0 && job.job().metadata.labels.empty();
  if (ganged_) job.Gang(api::GangScheduler::kVolcano);
  priced_ = seed % 2 == 0;
  if (priced_) job.Prices("0.10", seed % 8 == 0 ? "" : "0.37", "2.48");
  if (seed % 16 == 2) job.MaxDollars("0.40");
  world_.emplace(job);
  world_->queues.support = ObservedQueues::Support::kServed;
  world_->queues.flavors["on-demand"] = {};
  world_->gang = {.enabled = true, .served = children::GangApi::kVolcano};
  world_->queues.priorities["low"] = -10;
}
History::~History() = default;

bool History::Chance(double probability) {
  return static_cast<double>(random_()) < probability * 4294967296.0;
}
int History::Roll(int sides) { return static_cast<int>(random_() % sides); }

void History::Note(const std::string& line) {
  if (!traced_) return;
  const auto elapsed =
      std::chrono::duration_cast<seconds>(world_->now.time_since_epoch()).count() % 100000;
  trace_.push_back(absl::StrCat("[", elapsed, "] ", line));
}

void History::Break(const std::string& rule) {
  if (!broken_) broken_ = rule;
  Note("BROKEN: " + rule);
}

std::string History::Trace() const {
  return absl::StrCat(absl::StrJoin(trace_, "\n"), "\n", api::StatusToJson(world_->status()));
}

// Each store is as late as it likes, but never goes back.
void History::See(bool all) {
  Observed now = world_->Look();
  if (all || Chance(0.6)) view_.job = now.job;
  // An account goes by news that are not older than usual.
  const bool stale = priced_ && world_->now - pods_seen_ >= kNewsDelay;
  if (all || Chance(0.6) || stale) SeePods(std::move(now.pods));
  if (all || Chance(0.6)) {
    view_.service = now.service;
    view_.config_map = now.config_map;
    view_.network_policy = now.network_policy;
  }
  if (all || Chance(0.6)) view_.workloads = std::move(now.workloads);
  view_.queues = std::move(now.queues);
  if (all || !ganged_ || Chance(0.6)) view_.pod_groups = std::move(now.pod_groups);
  view_.gang = now.gang;
  view_.nodes = std::move(now.nodes);
  view_.head = std::move(now.head);
  view_.create_error = std::move(now.create_error);
  view_.settled = settled_;
  view_.backoff = backoff_;
}

void History::RestartOperator() {
  Note("the operator dies");
  lives_ = {};
  settled_.clear();
  backoff_ = {};
  followed_.reset();
  world_->head.reset();
  See(/*all=*/true);
  removed_.clear();
}

void History::OperatorPass(bool may_die) {
  const auto dies = [&] { return may_die && Chance(0.01); };
  view_.lives.reset();
  if (priced_) {
    view_.lives = lives_.See(view_.job->job.spec, view_.job->status.cost, view_.pods,
                             std::exchange(removed_, {}), view_.nodes, world_->now);
  }
  const Plan plan = MakePlan(view_, world_->settings, world_->now);
  planned_ = view_.job;
  planned_workloads_ = view_.workloads;
  last_idle_ = plan.idle();
  if (dies()) return RestartOperator();
  if (plan.write_status) {
    lives_.Offer(plan.status.cost);
    if (!world_->WriteStatus(plan, view_.job->resource_version)) {
      Note("status refused");
      return;
    }
    Note("status " + (traced_ ? api::StatusToJson(plan.status) : std::string()));
    CheckWrite(plan);
    lives_.Stored();
    settled_.insert(plan.settled.begin(), plan.settled.end());
    view_.job = world_->job;  // the answer to the write
  }
  followed_ = plan.follow;
  view_.backoff = backoff_ = plan.backoff;
  for (const auto& stage : plan.stages) {
    bool done = true;
    for (const Effect& effect : stage) {
      if (dies()) return RestartOperator();
      CheckEffect(effect);
      done = world_->Carry(effect) && done;
      if (may_die && Chance(0.1)) See(/*all=*/false);
    }
    if (!done) return;
  }
}

void History::CheckWrite(const Plan& plan) {
  const api::JobStatus& was = view_.job->status;
  const api::JobStatus& is = plan.status;
  if (Chance(0.1)) {  // most of this test's time would go there
    const absl::StatusOr<api::JobStatus> read = api::StatusFromJson(api::StatusToJson(is));
    if (!read.ok() || *read != is) Break("the status does not survive JSON");
  }
  if (is.attempt < was.attempt) Break("the attempt went back");
  if (is.Is(ConditionType::kSucceeded) && is.Is(ConditionType::kFailed)) Break("two verdicts");
  for (const ConditionType type : {ConditionType::kSucceeded, ConditionType::kFailed}) {
    if (was.Is(type) && !is.Is(type)) Break("a verdict was taken back");
  }
  if (was.first_failure && is.first_failure != was.first_failure &&
      !Completes(is.first_failure, *was.first_failure)) {
    Break("the first failure was overwritten");
  }
  if (is.conditions.size() != static_cast<size_t>(api::kConditionTypes)) Break("conditions");
  for (size_t i = 0; i < is.conditions.size(); ++i) {
    if (is.conditions[i].type != static_cast<ConditionType>(i)) Break("order of conditions");
    if (is.conditions[i].reason.empty()) Break("a condition without a reason");
  }
  if (is.restarts > view_.job->job.spec.run_policy.max_restarts) Break("beyond maxRestarts");
  CheckSizes(is);
  CheckFindings(plan);
  CheckCost(was, is);
  const api::Condition* failed = is.Find(ConditionType::kFailed);
  if (!was.finished() && failed->reason == "StartupDeadlineExceeded") CheckNobodyWasForgotten();
  const api::Condition* restarting = is.Find(ConditionType::kRestarting);
  if (is.attempt > was.attempt && restarting->reason == "NoTrainerLeft") CheckNoTrainerLeft(is);

  // Each pod pays at most once; a stall pays without one.
  int affordable = 0;
  for (const std::string& uid : is.uncounted) {
    if (!Contains(was.uncounted, uid) && charged_.insert(uid).second) ++affordable;
  }
  for (const Event& event : plan.events) affordable += event.reason == "Stalled" ? 1 : 0;
  if (is.restarts - was.restarts > affordable) Break("a failure was counted twice");
}

void History::CheckSizes(const api::JobStatus& status) {
  const api::Spec& spec = view_.job->job.spec;
  if (spec.autoscaling == api::Switch::kDisabled) return;
  const api::Role& cpu = spec.roles[1];
  for (const api::RoleCounts& counts : status.role_statuses) {
    if (counts.name != "cpu") continue;
    const int32_t most = std::max(*cpu.min_replicas, *cpu.max_replicas);
    if (counts.desired < *cpu.min_replicas || counts.desired > most) Break("scaled out of bounds");
  }
}

// Each is told once, whoever the operator is, and none is forgotten.
void History::CheckFindings(const Plan& plan) {
  for (const Event& event : plan.events) {
    if (event.reason != "Finding") continue;
    const std::string name = event.note.substr(0, event.note.find(':'));
    if (!told_.insert(name).second) Break("told twice: " + name);
  }
  if (plan.status.findings.empty() && !view_.job->status.findings.empty()) Break("findings lost");
}

// Nobody waits for a CPU worker that has ended well and that the present head will never meet.
void History::CheckNobodyWasForgotten() {
  if (!view_.head || !view_.head->connected || !world_->Has("vit-head-0")) return;
  const ObservedPod& head = world_->Pod("vit-head-0");
  for (const auto& [name, pod] : world_->pods) {
    if (pod->role != "cpu" || !pod->succeeded() || pod->attempt != head.attempt) continue;
    if (pod->incarnation < head.incarnation && world_->now > *pod->finished + seconds(300)) {
      Break(name + " ended under an earlier head and was waited for");
    }
  }
}

// However late the pods are seen: who works at the head is not given up together with the others.
void History::CheckNoTrainerLeft(const api::JobStatus& is) {
  if (!view_.head || !view_.head->connected) return;
  for (const auto& [name, pod] : world_->pods) {
    const auto node = world_->nodes.find(pod->node);
    const bool silent = node != world_->nodes.end() && !node->second.ready;
    const bool lives = pod->role == "gpu" && pod->runtime == ObservedPod::Runtime::kRunning &&
                       !pod->deletion_time && pod->attempt == is.attempt - 1;
    if (!lives || silent || Contains(is.uncounted, pod->uid)) continue;
    const auto member = view_.head->members.find("gpu-" + std::to_string(pod->index));
    if (member == view_.head->members.end() || !member->second.connected) continue;
    if (member->second.incarnation == pod->incarnation) Break(name + " was left, and working");
  }
}

void History::CheckEffect(const Effect& effect) {
  const api::JobStatus& status = world_->status();
  Note("effect " + Describe(effect));
  if (std::holds_alternative<DeletePods>(effect) && !status.finished() && !Suspends(status) &&
      !Waits(status)) {
    Break("all pods deleted for no reason");
  }
  if (std::holds_alternative<DeleteJob>(effect) && !status.finished())
    Break("a living job deleted");
  const auto* update = std::get_if<UpdateWorkload>(&effect);
  if (update != nullptr && update->release) CheckRelease(*update->read);
  const auto* creation = std::get_if<CreatePod>(&effect);
  if (creation != nullptr) CheckCreation(*creation);
  const auto* deletion = std::get_if<DeleteChild>(&effect);
  if (deletion != nullptr && deletion->kind == ChildKind::kPod) CheckDeletion(*deletion);
}

// As far as the pods are seen, which may be late.
void History::CheckRelease(const ObservedWorkload& workload) {
  const bool gangs = workload.name == ModelCluster::kGang;
  for (const auto& pod : view_.pods) {
    if ((gangs || pod->name == workload.name) && world_->Has(pod->name)) {
      Break("quota is given back that pods still use");
    }
  }
}

// When the plan was made: by the gang's Workload, or by one of its own.
bool History::WasAdmitted(const std::string& role, int index) const {
  return std::any_of(
      planned_workloads_.begin(), planned_workloads_.end(), [&](const auto& workload) {
        const bool gangs = workload->name == ModelCluster::kGang && index < workload->CountOf(role);
        return workload->admitted() &&
               (gangs || workload->name == absl::StrCat("vit-", role, "-", index));
      });
}

void History::CheckCreation(const CreatePod& pod) {
  const bool queued = planned_->job.metadata.labels.contains(api::kQueueLabel);
  const bool served = world_->queues.support == ObservedQueues::Support::kServed;
  const bool admitted = WasAdmitted(planned_->job.spec.roles.at(pod.role).name, pod.index);
  if (queued && served && !admitted) Break("a pod without an admission");
  const api::Spec& spec = planned_->job.spec;
  if (pod.index >= WantedReplicas(spec, planned_->status, spec.roles.at(pod.role))) {
    Break("a pod beyond replicas");
  }
  if (pod.origin->attempt > world_->status().attempt) {
    Break("a pod of an attempt that is not stored");
  }
}

void History::CheckDeletion(const DeleteChild& deletion) {
  const api::JobStatus& status = world_->status();
  const auto found = world_->pods.find(deletion.name);
  if (found == world_->pods.end() || found->second->uid != deletion.uid) return;
  const ObservedPod& pod = *found->second;
  const bool lives = pod.runtime == ObservedPod::Runtime::kRunning && !pod.deletion_time;
  if (!lives || pod.attempt < status.attempt) return;
  const api::Spec& spec = planned_->job.spec;
  const bool lent = pod.role == "cpu" && !planned_workloads_.empty();
  const bool surplus =
      pod.role == "cpu" && (pod.index >= WantedReplicas(spec, planned_->status, spec.roles[1]) ||
                            (lent && !WasAdmitted(pod.role, pod.index)));
  if (!status.finished() && !surplus && !Contains(status.uncounted, pod.uid)) {
    Break("a running pod deleted for no reason: " + pod.name);
  }
}

bool History::Settled() const {
  return last_idle_ && world_->status().finished() && world_->Empty() && !HoldsQuota();
}

bool History::HoldsQuota() const {
  return std::any_of(world_->workloads.begin(), world_->workloads.end(), [](const auto& entry) {
    return entry.second->holds_quota && !entry.second->Is("Finished");
  });
}

void History::CheckEnd() {
  const bool ttl = world_->job->job.spec.run_policy.ttl_seconds_after_finished.has_value();
  if (!world_->status().finished()) {
    Break("the job never finished");
  } else if (!world_->Empty() && !world_->job_deleted) {  // otherwise the garbage collector's
    Break("children are left");
  } else if (HoldsQuota() && !world_->job_deleted) {
    Break("quota is left held");
  } else if (ttl && !world_->job_deleted) {
    Break("the job outlived its TTL");
  } else if (!ttl && !last_idle_) {
    Break("no fixpoint");
  }
}

std::optional<std::string> History::Run() {
  See(/*all=*/true);
  for (int step = 0; step < kDisturbedSteps && !broken_; ++step) {
    world_->Advance(seconds(Roll(15)));
    DisturbWorld();
    MoveWorld(0.5);
    LetHeadSpeak(0.9);
    See(/*all=*/false);
    OperatorPass(/*may_die=*/true);
  }
  HealWorld();
  for (int step = 0; step < kCalmSteps && !broken_; ++step) {
    if (world_->job_deleted || (Settled() && step > 0)) break;
    world_->Advance(seconds(10));
    MoveWorld(1);
    LetHeadSpeak(1);
    See(/*all=*/true);
    OperatorPass(/*may_die=*/false);
  }
  if (!broken_ && !world_->job_deleted) {
    world_->Advance(seconds(200));
    See(/*all=*/true);
    OperatorPass(/*may_die=*/false);
  }
  if (!broken_) CheckEnd();
  if (!broken_) CheckFinalCost();
  return broken_;
}

}  // namespace hetero::plan
