#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/children/settings.h"
#include "operator/plan/make_plan.h"
#include "operator/plan/pod_lives.h"
#include "tests/unit/operator/plan/job_builder.h"

namespace hetero::plan {

// A cluster with one job in it, small enough to be obviously right: objects in maps, deletion of a
// pod that has not ended in two steps. It carries plans out as the executor does: the status first,
// refused when the job has changed since it was read.
class ModelCluster {
 public:
  using Pods = std::map<std::string, std::shared_ptr<const ObservedPod>>;

  explicit ModelCluster(const Job& job);

  // What an operator that is up to date sees.
  Observed Look() const;
  // One pass over Look(): plans and applies.
  Plan Pass();
  // Passes until one is idle; returns how many were not. More than 30 fail the test.
  int Settle();
  // False: the status write was refused.
  bool WriteStatus(const Plan& plan, const std::string& read_version);
  // False: the object that the effect needs out of the way is still there, or creation fails now.
  bool Carry(const Effect& effect);
  std::string NameOf(const CreatePod& effect) const;
  void Advance(base::Duration duration) { now += duration; }

  void Change(const std::function<void(ObservedJob&)>& edit);  // of the job; a new version
  void ChangeSpec(const std::function<void(api::Spec&)>& edit);
  void Change(const std::string& pod, const std::function<void(ObservedPod&)>& edit);

  // Pods.
  bool Has(const std::string& pod) const { return pods.contains(pod); }
  const ObservedPod& Pod(const std::string& name) const;
  void Start(const std::string& pod);  // schedules and runs it
  void StartAll();
  void Exit(const std::string& pod, int code, const std::string& reason = "",
            const std::string& message = "");
  void Delete(const std::string& pod);  // as somebody would
  void Vanish(const std::string& pod);  // the end of Terminating
  void VanishTerminating();
  // What all pods that ever were have cost until now, by their own times and the roles' prices:
  // dollars.
  double TrueDollars() const;
  void RestartOperator();  // it forgets what it has in memory

  // Kueue, and the job's Workloads.
  static constexpr char kGang[] = "vit-gang";
  void Admit(const std::string& workload = kGang, const std::string& flavor = "on-demand");
  void Evict(const std::string& reason, const std::string& message,
             const std::string& workload = kGang);
  void ChangeWorkload(const std::string& name, const std::function<void(ObservedWorkload&)>& edit);
  void ChangeGang(const std::function<void(ObservedWorkload&)>& edit) {
    ChangeWorkload(kGang, edit);
  }
  const ObservedWorkload& Workload(const std::string& name) const;
  const ObservedWorkload& Gang() const { return Workload(kGang); }
  // "True/Preempted"; "absent".
  std::string GangState(const std::string& condition) const;

  // The head.
  void HeadSays(HeadReport::State state);  // with everybody who runs registered
  void Freeze(const std::string& pod);     // the head notices when it speaks next
  HeadReport& report() { return *head; }
  // All pods started, registered, training.
  void RunJob();
  // A job that trains, until its training has stopped and its pods are gone.
  void Suspend();

  const api::JobStatus& status() const { return job->status; }
  const api::Condition& Condition(api::ConditionType type) const { return *status().Find(type); }
  // "True/AllRegistered".
  std::string State(api::ConditionType type) const;
  bool Empty() const;                             // no child is left
  size_t CountOf(const std::string& what) const;  // in `calls` and `events`

  base::WallTime now;
  children::Settings settings;
  std::shared_ptr<const ObservedJob> job;
  Pods pods;
  std::shared_ptr<const ObservedObject> service, config_map, network_policy;
  bool secret = false;
  bool job_deleted = false;
  std::map<std::string, std::shared_ptr<const ObservedWorkload>> workloads;
  // That others made and nobody owns.
  std::map<std::string, std::shared_ptr<const ObservedWorkload>> prebuilt;
  ObservedQueues queues;
  std::map<std::string, std::shared_ptr<const ObservedObject>> pod_groups;
  std::vector<CreatePodGroup> gangs;  // as they were created
  ObservedGang gang;
  std::map<std::string, ObservedNode> nodes;
  std::optional<bool> zones;
  bool head_hears = true;  // warnings
  std::optional<HeadReport> head;
  std::optional<CreateError> create_error;  // set: pods and Workloads cannot be created
  std::set<std::string> settled;
  Backoff backoff;
  PodLives lives;
  std::vector<RemovedPod> removed;                   // all that ever were
  size_t removed_seen = 0;                           // of them, by the operator
  std::set<std::string> frozen;                      // uids of pods
  std::map<std::string, HeadReport::Sizing> sizing;  // what the head finds

  // Of each pod as it was last created.
  std::map<std::string, std::shared_ptr<const PodOrigin>> origins;
  std::map<std::string, std::shared_ptr<const children::Placement>> placements;

  std::vector<std::string> calls;   // API writes: "status", "create vit-gpu-0", "delete pods", ...
  std::vector<std::string> events;  // reasons
  std::vector<ReportExit> exits;    // told to the head
  std::vector<StopHead> stops;      // likewise
  std::vector<WarnHead> warnings;   // likewise

 private:
  std::shared_ptr<const ObservedObject> NewObject(const std::string& name);
  bool Do(const CreateChild& effect);
  bool Do(const CreatePod& effect);
  bool Do(const CreateTrust& effect);
  bool Do(const CreateWorkload& effect);
  bool Do(const CreatePodGroup& effect);
  bool Do(const AdoptWorkload& effect);
  bool Do(const UpdateWorkload& effect);
  bool Do(const DeleteChild& effect);
  bool Do(const DeletePods& effect);
  bool Do(const DeleteSecret& effect);
  bool Do(const DeleteJob& effect);
  bool Do(const ReportExit& effect);
  bool Do(const StopHead& effect);
  bool Do(const WarnHead& effect);
  void MeetMembers(const api::Role& role);
  void BeginDeletion(const std::string& pod, int64_t grace_seconds);
  void Remove(const std::string& pod);
  void SeeLives(Observed& seen);

  std::string head_uid_;                           // of the head's pod
  std::map<std::string, HeadReport::Member> met_;  // by the head
  int64_t version_ = 1;
  int64_t next_uid_ = 1;
};

}  // namespace hetero::plan
