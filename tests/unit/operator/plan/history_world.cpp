#include <chrono>
#include <iterator>

#include "operator/children/names.h"
#include "tests/unit/operator/plan/history.h"

namespace hetero::plan {
namespace {

using api::FailureAction;
using api::FailureReason;
using std::chrono::seconds;
using Runtime = ObservedPod::Runtime;
using State = HeadReport::State;

constexpr FailureAction kActions[] = {FailureAction::kFailJob, FailureAction::kRestartGang,
                                      FailureAction::kRestartPod, FailureAction::kIgnore};
constexpr FailureReason kReasons[] = {FailureReason::kOomKilled, FailureReason::kEvicted,
                                      FailureReason::kDisruption};

std::string Verdict(bool succeeded) {
  return api::VerdictToJson({.succeeded = succeeded, .message = "the end", .result = {.steps = 9}});
}

}  // namespace

Job History::RandomJob() {
  Job job;
  job.Cpus(Roll(4), Roll(2)).Gpus(1 + Roll(3)).MaxRestarts(Roll(6));
  if (Chance(0.3)) job.Autoscale(Roll(2), 2 + Roll(4));
  if (Chance(0.1)) job.Suspend();
  if (Chance(0.3)) job.Ttl(Roll(100));
  if (Chance(0.1)) job.ActiveDeadline(200 + Roll(600));
  if (Chance(0.1)) job.MaxWait(200 + Roll(600));
  if (Chance(0.3)) job.StallTimeout(60 + Roll(60));
  if (Chance(0.2)) job.Scope(Roll(3), api::RestartScope::kGang);
  if (Chance(0.2)) job.Rule(Roll(3), kActions[Roll(4)], {api::ExitCodeOperator::kIn, {3}});
  if (Chance(0.2)) job.Rule(Roll(3), kActions[Roll(3)], kReasons[Roll(std::size(kReasons))]);
  if (Chance(0.3)) {
    job.Queue("team");
    if (Chance(0.5)) job.ElasticClass("low");
  }
  const auto either = [this] {
    return Chance(0.7) ? api::Switch::kEnabled : api::Switch::kDisabled;
  };
  job.Network(either(), either());
  return job;
}

void History::DisturbPod(const std::string& name) {
  const ObservedPod& pod = world_->Pod(name);
  if (pod.ended()) return;
  const bool running = pod.runtime == Runtime::kRunning;
  switch (Roll(10)) {
    case 0:
    case 1: {
      if (!running) return;
      constexpr int kCodes[] = {1, 3, 137, 139};
      const int code = kCodes[Roll(4)];
      Note(name + " exits with " + std::to_string(code));
      return world_->Exit(name, code, code == 137 ? "OOMKilled" : "Error", "trace back");
    }
    case 2:
      Note(name + " is evicted");
      return world_->Change(name, [&](ObservedPod& p) {
        p.phase = "Failed";
        p.reason = "Evicted";
        p.disrupted = true;
        if (running) p.runtime = Runtime::kTerminated;
        p.exit_code = running ? 137 : 0;
        p.failed_by = world_->now;
      });
    case 3:
      Note(name + " is deleted by somebody");
      return world_->Delete(name);
    case 4: {
      if (pod.node.empty()) return;
      Note(pod.node + " falls silent");
      ObservedNode& node = world_->nodes[pod.node];
      node = {pod.node, false, world_->now};
      return;
    }
    case 5: {
      if (!running || pod.role != "gpu" || !world_->head) return;
      Note(name + " freezes");
      return world_->Freeze(name);
    }
    case 6:
      if (running && pod.role == "gpu") StopInOrder(name);
      return;
    case 7:
      return CrashHead();
    case 9: {
      if (pod.node.empty()) return;
      Note(pod.node + " is about to go");
      ObservedNode& node = world_->nodes[pod.node];
      node.name = pod.node;
      node.notice = {.kind = NodeNotice::Kind::kLeaving, .sign = "taint"};
      return;
    }
    case 8: {
      if (!running) return;
      const bool met = Chance(0.5);
      Note(pod.node + (met ? " was reset" : " shuts down"));
      return world_->Change(name, [&](ObservedPod& p) {
        p.phase = "Failed";
        p.runtime = Runtime::kTerminated;
        p.exit_code = met ? 255 : 137;
        p.reason = met ? "Unknown" : "Terminated";
        p.finished = world_->now;
      });
    }
  }
}

// Somebody deletes one trainer: it and all others make their checkpoint and end, each when it
// likes, and whoever comes back to the head meanwhile is told the same.
void History::StopInOrder(const std::string& name) {
  Note(name + " is deleted by somebody and all stop in order");
  for (const auto& [other, pod] : world_->pods) {
    if (pod->runtime == Runtime::kRunning && pod->attempt == world_->status().attempt) {
      stopping_.insert(pod->uid);
    }
  }
  world_->Delete(name);
}

// It has let its CPU workers go before.
void History::CrashHead() {
  if (!world_->Has("vit-head-0") || world_->Pod("vit-head-0").runtime != Runtime::kRunning) return;
  Note("the head lets its CPU workers go and crashes");
  std::vector<std::string> workers;
  for (const auto& [name, pod] : world_->pods) {
    if (pod->role == "cpu" && pod->runtime == Runtime::kRunning) workers.push_back(name);
  }
  for (const std::string& name : workers) world_->Exit(name, 0);
  world_->Exit("vit-head-0", 139);
}

void History::EndStopping(const std::string& name) {
  const std::string role = world_->Pod(name).role;
  Note(name + " has stopped in order");
  world_->Exit(name, role == "cpu" ? 0 : 130);
}

void History::DisturbGang() {
  ModelCluster& world = *world_;
  if (Chance(0.02)) {
    const bool removed = world.gang.served.has_value();
    world.gang.served = removed ? std::nullopt : std::optional(children::GangApi::kVolcano);
    Note(removed ? "Volcano is removed" : "Volcano is installed");
    if (removed) world.pod_groups.clear();
  } else if (!world.pod_groups.empty() && Chance(0.05)) {
    Note(world.pod_groups.begin()->first + " is deleted");
    world.pod_groups.erase(world.pod_groups.begin());
  }
}

void History::DisturbQueue() {
  ModelCluster& world = *world_;
  if (ganged_) DisturbGang();
  if (Chance(0.02)) {
    using enum ObservedQueues::Support;
    world.queues.support = world.queues.support == kServed ? kMissing : kServed;
    Note(world.queues.support == kServed ? "Kueue is installed" : "Kueue is removed");
    if (world.queues.support == kMissing) world.workloads.clear();
  }
  if (world.workloads.empty()) return;
  auto any = world.workloads.begin();
  std::advance(any, Roll(static_cast<int>(world.workloads.size())));
  const std::string name = any->first;
  const bool held = any->second->holds_quota && !any->second->evicted();
  if (Chance(0.01)) {
    Note("somebody deletes " + name);
    world.workloads.erase(name);
  } else if (held && Chance(0.06)) {
    constexpr const char* kWhy[] = {"Preempted", "PodsReadyTimeout", "NodeFailures"};
    const char* why = kWhy[Roll(3)];
    Note(name + " is evicted: " + why);
    world.Evict(why, "others need it", name);
  } else if (Chance(0.02)) {
    Note(name + " is deactivated");
    world.ChangeWorkload(name, [](ObservedWorkload& workload) { workload.active = false; });
  } else if (Chance(0.3)) {
    world.ChangeWorkload(name, [](ObservedWorkload& workload) { workload.active = true; });
  }
}

void History::MoveQueue(double pace) {
  if (world_->queues.support != ObservedQueues::Support::kServed) return;
  const auto workloads = world_->workloads;
  for (const auto& [name, workload] : workloads) {
    if (workload->holds_quota || !workload->active || workload->Is("Finished")) continue;
    if (!Chance(pace)) continue;
    Note(name + " is admitted");
    world_->Admit(name);
  }
}

void History::DisturbWorld() {
  ModelCluster& world = *world_;
  DisturbQueue();
  if (!world.pods.empty() && Chance(0.25)) {
    auto pod = world.pods.begin();
    std::advance(pod, Roll(static_cast<int>(world.pods.size())));
    DisturbPod(std::string(pod->first));
  }
  if (!world.nodes.empty() && Chance(0.3)) world.nodes.begin()->second.ready = true;
  if (!world.nodes.empty() && Chance(0.1)) world.nodes.begin()->second.notice = {};
  if (Chance(0.03)) {
    world.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = !spec.run_policy.suspend; });
    Note(std::string("suspend=") + (world.job->job.spec.run_policy.suspend ? "true" : "false"));
  }
  if (Chance(0.05)) {
    const int replicas = Roll(4);
    world.ChangeSpec([replicas](api::Spec& spec) { spec.roles[1].replicas = replicas; });
    Note("cpu scaled to " + std::to_string(replicas));
  }
  if (Chance(0.1)) world.sizing["cpu"] = {Roll(8), "measured"};
  if (Chance(0.05)) world.create_error = CreateError{CreateError::Kind::kQuotaExceeded, "quota"};
  if (Chance(0.3)) world.create_error.reset();
  if (Chance(0.01)) {
    Note("somebody deletes the Service");
    world.service = nullptr;
  }
  if (Chance(0.01)) {
    Note("somebody deletes the ConfigMap");
    world.config_map = nullptr;
  }
  if (Chance(0.02)) {
    training_over_ = true;
    failing_ = Chance(0.2);
    Note(failing_ ? "training fails" : "training is over");
  }
}

void History::MoveWorld(double pace) {
  MoveQueue(pace);
  std::vector<std::string> names;
  for (const auto& [name, pod] : world_->pods) names.push_back(name);
  for (const std::string& name : names) {
    if (!Chance(pace)) continue;
    const ObservedPod& pod = world_->Pod(name);
    const auto node = world_->nodes.find(pod.node);
    const bool silent = node != world_->nodes.end() && !node->second.ready;
    if (silent) continue;
    if (pod.deletion_time) {
      world_->Vanish(name);
    } else if (stopping_.contains(pod.uid) && pod.runtime == Runtime::kRunning) {
      EndStopping(name);
    } else if (pod.runtime == Runtime::kWaiting && pod.phase == "Pending") {
      world_->Start(name);
    }
  }
}

// The pods' own end; the head's last words reach the operator or they do not.
void History::EndTraining(bool head_is_heard) {
  for (const api::Role& role : world_->job->job.spec.roles) {
    for (int i = 0; i < role.replicas; ++i) {
      const std::string name = children::PodName(world_->job->job.metadata, role.name, i);
      if (!world_->Has(name)) continue;
      const ObservedPod& pod = world_->Pod(name);
      if (pod.runtime != Runtime::kRunning || pod.deletion_time) continue;
      if (role.type == api::RoleType::kCpuWorker || Chance(0.3)) continue;
      world_->Exit(name, failing_ ? 1 : 0, "", Verdict(!failing_));
    }
  }
  if (!head_is_heard || !world_->head) return;
  world_->head->state = failing_ ? State::kFailed : State::kSucceeded;
  world_->head->verdict = api::VerdictFromJson(Verdict(!failing_));
}

// Rules that come and go with the minutes, for the job and for members.
void History::LetHeadFind() {
  const int64_t minute =
      std::chrono::floor<std::chrono::minutes>(world_->now.time_since_epoch()).count();
  std::vector<api::JobFinding>& findings = world_->head->findings;
  findings.clear();
  for (int64_t i = 0; i < minute % 4; ++i) {
    findings.push_back({.rule = "Rule" + std::to_string((minute + i) % 5),
                        .message = std::to_string(minute) + " % of the time",
                        .member = i == 1 ? "cpu-0" : "",
                        .seconds = static_cast<double>(minute),
                        .active = minute % 2 == 0});
  }
}

void History::LetHeadSpeak(double pace) {
  ModelCluster& world = *world_;
  if (!followed_) {
    world.head.reset();
    return;
  }
  const auto found = world.pods.find("vit-head-0");
  const bool hears = found != world.pods.end() && found->second->uid == followed_->pod_uid &&
                     found->second->runtime == Runtime::kRunning &&
                     found->second->attempt == world.status().attempt;
  if (!hears || !Chance(pace)) {
    if (world.head) world.head->connected = false;
    return;
  }
  if (stopping_.contains(found->second->uid)) {
    for (const auto& [name, pod] : world.pods) {
      if (pod->runtime == Runtime::kRunning) stopping_.insert(pod->uid);
    }
    return world.HeadSays(State::kStopped);
  }
  const std::optional<HeadReport> earlier = world.head;
  world.HeadSays(State::kWaiting);
  bool all = true;
  for (const api::Role& role : world.job->job.spec.roles) {
    const auto members = world.head->roles.find(role.name);
    if (members == world.head->roles.end()) continue;
    const int32_t required = role.type == api::RoleType::kCpuWorker
                                 ? std::min(*role.min_replicas, role.replicas)
                                 : role.replicas;
    all = all && members->second.registered >= required;
  }
  if (!all) return;
  world.HeadSays(State::kRunning);
  LetHeadFind();
  const bool steps = !earlier || earlier->state != State::kRunning || Chance(0.9);
  world.head->last_step_time = steps ? world.now : earlier->last_step_time;
  if (training_over_ && Chance(0.5)) EndTraining(Chance(0.7));
}

void History::HealWorld() {
  ModelCluster& world = *world_;
  Note("calm");
  for (auto& [name, node] : world.nodes) node.ready = true;
  world.create_error.reset();
  training_over_ = true;
  world.gang.served = children::GangApi::kVolcano;
  world.queues.support = ObservedQueues::Support::kServed;
  const auto workloads = world.workloads;
  for (const auto& [name, workload] : workloads) {
    world.ChangeWorkload(name, [](ObservedWorkload& healed) { healed.active = true; });
  }
  if (world.job->job.spec.run_policy.suspend) {
    world.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  }
}

}  // namespace hetero::plan
