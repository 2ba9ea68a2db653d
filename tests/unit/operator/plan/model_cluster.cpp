#include "tests/unit/operator/plan/model_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "operator/children/names.h"
#include "operator/plan/disruption.h"

namespace hetero::plan {
namespace {

using std::chrono::seconds;

constexpr int64_t kPodGrace = 30;

}  // namespace

ModelCluster::ModelCluster(const Job& job) {
  now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  auto object = std::make_shared<ObservedJob>();
  object->job = job.job();
  object->generation = 1;
  object->resource_version = "1";
  this->job = std::move(object);
}

Observed ModelCluster::Look() const {
  Observed seen;
  seen.job = job;
  for (const auto& [name, pod] : pods) seen.pods.push_back(pod);
  seen.service = service;
  seen.config_map = config_map;
  seen.network_policy = network_policy;
  for (const auto& [name, workload] : workloads) seen.workloads.push_back(workload);
  seen.queues = queues;
  for (const auto& [name, group] : pod_groups) seen.pod_groups.push_back(group);
  seen.gang = gang;
  seen.nodes = nodes;
  seen.zones = zones;
  seen.head = head;
  seen.create_error = create_error;
  seen.settled = settled;
  seen.backoff = backoff;
  return seen;
}

Plan ModelCluster::Pass() {
  Observed seen = Look();
  SeeLives(seen);
  Plan plan = MakePlan(seen, settings, now);
  if (plan.write_status) lives.Offer(plan.status.cost);
  if (plan.write_status && !WriteStatus(plan, job->resource_version)) return plan;
  if (plan.write_status) lives.Stored();
  backoff = plan.backoff;
  for (const auto& stage : plan.stages) {
    bool done = true;
    for (const Effect& effect : stage) done = Carry(effect) && done;
    if (!done) break;
  }
  for (const Event& event : plan.events) events.push_back(event.reason);
  settled.insert(plan.settled.begin(), plan.settled.end());
  return plan;
}

int ModelCluster::Settle() {
  for (int passes = 0; passes < 30; ++passes) {
    if (Pass().idle()) return passes;
  }
  ADD_FAILURE() << "no fixpoint";
  return -1;
}

bool ModelCluster::WriteStatus(const Plan& plan, const std::string& read_version) {
  if (read_version != job->resource_version) return false;
  calls.push_back("status");
  Change([&plan](ObservedJob& object) { object.status = plan.status; });
  return true;
}

void ModelCluster::Change(const std::function<void(ObservedJob&)>& edit) {
  auto changed = std::make_shared<ObservedJob>(*job);
  edit(*changed);
  changed->resource_version = std::to_string(++version_);
  job = std::move(changed);
}

void ModelCluster::ChangeSpec(const std::function<void(api::Spec&)>& edit) {
  Change([&edit](ObservedJob& object) {
    edit(object.job.spec);
    ++object.generation;
  });
}

void ModelCluster::Change(const std::string& pod, const std::function<void(ObservedPod&)>& edit) {
  auto changed = std::make_shared<ObservedPod>(Pod(pod));
  edit(*changed);
  pods[pod] = std::move(changed);
}

const ObservedPod& ModelCluster::Pod(const std::string& name) const {
  static const ObservedPod none;
  const auto found = pods.find(name);
  EXPECT_NE(found, pods.end()) << "no pod " << name;
  return found == pods.end() ? none : *found->second;
}

std::shared_ptr<const ObservedObject> ModelCluster::NewObject(const std::string& name) {
  auto object = std::make_shared<ObservedObject>();
  object->name = name;
  object->uid = "object-" + std::to_string(next_uid_++);
  object->owner_uid = job->job.metadata.uid;
  return object;
}

bool ModelCluster::Carry(const Effect& effect) {
  return std::visit([this](const auto& one) { return Do(one); }, effect);
}

bool ModelCluster::Do(const CreateTrust&) {
  const std::string name = children::ConfigMapName(job->job.metadata);
  calls.push_back("create " + name);
  auto object = std::make_shared<ObservedObject>(*NewObject(name));
  const bool tls = job->job.spec.network.tls == api::Switch::kEnabled;
  if (tls) object->ca_pem = "authority " + object->uid;
  secret = tls;
  config_map = std::move(object);
  return true;
}

bool ModelCluster::Do(const CreatePodGroup& effect) {
  const std::string& name = effect.gang.group;
  calls.push_back("create " + name);
  if (create_error) return false;
  if (pod_groups.contains(name)) return true;
  auto group = std::make_shared<ObservedObject>(*NewObject(name));
  group->gang_api = effect.gang.gang_api;
  for (const CreatePodGroup::Role& role : effect.roles) group->min_member += role.count;
  pod_groups[name] = std::move(group);
  gangs.push_back(effect);
  return true;
}

bool ModelCluster::Do(const DeletePods&) {
  calls.push_back("delete pods");
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods) names.push_back(name);
  for (const std::string& name : names) BeginDeletion(name, kPodGrace);
  return true;
}

bool ModelCluster::Do(const DeleteSecret&) {
  calls.push_back("delete " + children::SecretName(job->job.metadata));
  secret = false;
  return true;
}

bool ModelCluster::Do(const DeleteJob&) {
  calls.push_back("delete job");
  job_deleted = true;
  return true;
}

bool ModelCluster::Do(const ReportExit& effect) {
  exits.push_back(effect);
  return true;
}

bool ModelCluster::Do(const StopHead& effect) {
  calls.emplace_back("stop head");
  stops.push_back(effect);
  if (head) head->told_to_end = true;
  return true;
}

bool ModelCluster::Do(const WarnHead& effect) {
  warnings.push_back(effect);
  if (head) {
    head->warned = {.notices = effect.notices, .at = now};
    if (head_hears) head->notices_fingerprint = FingerprintOf(effect.notices);
  }
  return true;
}

bool ModelCluster::Do(const CreateChild& effect) {
  calls.push_back("create " + effect.name);
  switch (effect.kind) {
    case ChildKind::kService:
      if (service == nullptr) {
        auto object = std::make_shared<ObservedObject>(*NewObject(effect.name));
        object->cluster_ip = "10.96.0." + std::to_string(next_uid_);
        service = std::move(object);
      }
      return true;
    case ChildKind::kNetworkPolicy:
      if (network_policy == nullptr) network_policy = NewObject(effect.name);
      return true;
    case ChildKind::kPod:
    case ChildKind::kConfigMap:
    case ChildKind::kWorkload:
    case ChildKind::kPodGroup:
      break;
  }
  ADD_FAILURE() << "there are effects of their own for what is made of more than a name";
  return false;
}

std::string ModelCluster::NameOf(const CreatePod& effect) const {
  return children::PodName(job->job.metadata, job->job.spec.roles.at(effect.role).name,
                           effect.index);
}

bool ModelCluster::Do(const CreatePod& effect) {
  const std::string name = NameOf(effect);
  calls.push_back("create " + name);
  if (create_error) return false;
  if (pods.contains(name)) return true;
  auto pod = std::make_shared<ObservedPod>();
  pod->name = name;
  pod->uid = name + "#" + std::to_string(next_uid_++);
  pod->owner_uid = job->job.metadata.uid;
  pod->labelled = true;
  pod->role = job->job.spec.roles.at(effect.role).name;
  pod->index = effect.index;
  pod->attempt = effect.origin->attempt;
  pod->incarnation = effect.origin->incarnation;
  pod->image = pod->role == "gpu" ? effect.origin->images.trainer : effect.origin->images.runtime;
  pod->phase = "Pending";
  pod->created = now;
  origins[name] = effect.origin;
  placements[name] = effect.placement;
  pods[name] = std::move(pod);
  return true;
}

bool ModelCluster::Do(const DeleteChild& effect) {
  calls.push_back("delete " + effect.name);
  const auto same = [&effect](const auto& object) {
    return object != nullptr && object->uid == effect.uid;
  };
  switch (effect.kind) {
    case ChildKind::kPod: {
      const auto found = pods.find(effect.name);
      if (found != pods.end() && same(found->second)) {
        BeginDeletion(effect.name, effect.grace_seconds.value_or(kPodGrace));
      }
      return true;
    }
    case ChildKind::kService:
      if (same(service)) service = nullptr;
      return true;
    case ChildKind::kConfigMap:
      if (same(config_map)) config_map = nullptr;
      return true;
    case ChildKind::kNetworkPolicy:
      if (same(network_policy)) network_policy = nullptr;
      return true;
    case ChildKind::kWorkload: {
      const auto found = workloads.find(effect.name);
      if (found != workloads.end() && same(found->second)) workloads.erase(found);
      return true;
    }
    case ChildKind::kPodGroup: {
      const auto found = pod_groups.find(effect.name);
      if (found != pod_groups.end() && same(found->second)) pod_groups.erase(found);
      return true;
    }
  }
  return false;
}

// Pods that have ended, or never ran, go at once; others are Terminating until Vanish().
void ModelCluster::BeginDeletion(const std::string& pod, int64_t grace_seconds) {
  const ObservedPod& found = Pod(pod);
  if (found.ended() || found.node.empty() || grace_seconds == 0) {
    Remove(pod);
  } else if (!found.deletion_time) {
    Change(pod, [&](ObservedPod& p) {
      p.deletion_time = now + seconds(grace_seconds);
      p.deletion_asked = now;
    });
  }
}

void ModelCluster::Start(const std::string& pod) {
  Change(pod, [this](ObservedPod& p) {
    p.node = "node-" + p.role + "-" + std::to_string(p.index);
    p.bound = now;
    p.phase = "Running";
    p.ready = true;
    p.runtime = ObservedPod::Runtime::kRunning;
  });
}

void ModelCluster::StartAll() {
  std::vector<std::string> waiting;
  for (const auto& [name, pod] : pods) {
    if (pod->runtime == ObservedPod::Runtime::kWaiting && pod->phase == "Pending") {
      waiting.push_back(name);
    }
  }
  for (const std::string& name : waiting) Start(name);
}

void ModelCluster::Exit(const std::string& pod, int code, const std::string& reason,
                        const std::string& message) {
  Change(pod, [&](ObservedPod& p) {
    p.phase = code == 0 ? "Succeeded" : "Failed";
    p.runtime = ObservedPod::Runtime::kTerminated;
    p.exit_code = code;
    p.reason = !reason.empty() ? reason : code == 0 ? "Completed" : "Error";
    p.message = message;
    p.finished = now;
  });
}

void ModelCluster::Delete(const std::string& pod) { BeginDeletion(pod, kPodGrace); }
void ModelCluster::HeadSays(HeadReport::State state) {
  const bool news = !head || head->state != state || head->attempt != status().attempt;
  if (!head) head.emplace();
  head->state = state;
  head->connected = true;
  head->attempt = status().attempt;
  head->last_heard = head->silent_since = now;
  if (news && state == HeadReport::State::kRunning) head->last_step_time = now;
  head->roles.clear();
  const auto head_pod = pods.find("vit-head-0");
  const std::string uid = head_pod == pods.end() ? "" : head_pod->second->uid;
  if (std::exchange(head_uid_, uid) != uid) met_.clear();
  for (const api::Role& role : job->job.spec.roles) {
    if (role.type != api::RoleType::kHead) MeetMembers(role);
  }
  head->members = met_;
  head->sizing = sizing;
}

// Who runs and is not frozen is there; of the others the head remembers whom it has met.
void ModelCluster::MeetMembers(const api::Role& role) {
  for (auto& [name, member] : met_) {
    if (name.starts_with(role.name + "-")) member.connected = false;
  }
  HeadReport::RoleMembers& counts = head->roles[role.name];
  counts.desired = role.replicas;
  for (const auto& [name, pod] : pods) {
    const bool runs = pod->role == role.name && pod->attempt == status().attempt &&
                      pod->runtime == ObservedPod::Runtime::kRunning && !frozen.contains(pod->uid);
    if (!runs) continue;
    met_[role.name + "-" + std::to_string(pod->index)] = {pod->incarnation, true, false};
    ++counts.registered;
  }
  for (auto& [name, member] : met_) {
    if (name.starts_with(role.name + "-")) member.lost = !member.connected;
  }
}

void ModelCluster::Freeze(const std::string& pod) { frozen.insert(Pod(pod).uid); }

void ModelCluster::RunJob() {
  Settle();
  StartAll();
  Settle();
  Advance(seconds(5));
  HeadSays(HeadReport::State::kRunning);
  Settle();
  Advance(seconds(5));
  report().last_step_time = now;
}

void ModelCluster::Suspend() {
  ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  Settle();
  HeadSays(HeadReport::State::kStopped);
  Settle();
  VanishTerminating();
  Settle();
}

std::string ModelCluster::State(api::ConditionType type) const {
  const api::Condition* condition = status().Find(type);
  if (condition == nullptr) return "absent";
  return std::string(api::NameOf(condition->status)) + "/" + condition->reason;
}

bool ModelCluster::Empty() const {
  return pods.empty() && service == nullptr && config_map == nullptr && network_policy == nullptr &&
         pod_groups.empty() && !secret;
}

size_t ModelCluster::CountOf(const std::string& what) const {
  return std::count(calls.begin(), calls.end(), what) +
         std::count(events.begin(), events.end(), what);
}

}  // namespace hetero::plan
