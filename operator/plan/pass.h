#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/job_status.h"
#include "base/clock.h"
#include "operator/children/settings.h"
#include "operator/plan/observed.h"
#include "operator/plan/plan.h"

namespace hetero::plan {

// A view of the status is never further behind the pods than by so many attempts.
inline constexpr int32_t kAttemptLead = 1000;

// One replica that the spec wants and, of a job in a queue, its Workload has room for.
struct Slot {
  const api::Role* role = nullptr;
  int32_t index = 0;
  const ObservedPod* pod = nullptr;     // of the current attempt; null: there is none
  std::string name;                     // of its pod, there or not
  const ObservedPod* holder = nullptr;  // of that name, of any attempt; null: the name is free

  // As the head calls it: "gpu-0".
  std::string member() const { return role->name + "-" + std::to_string(index); }
};

// What the steps of one plan share. `before` is the status as read, `status` the one being
// made; what kills or deletes looks at `before` alone, so that its reason is certainly stored.
struct Pass {
  Pass(const Observed& observed, const children::Settings& the_settings, base::WallTime the_now);
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  const Observed& seen;
  const children::Settings& settings;
  const base::WallTime now;
  const base::WallTime today;  // `now` in whole seconds, as a status keeps it
  const ObservedJob& object;
  const api::Metadata& metadata;
  const api::Spec& spec;
  const api::RunPolicy& policy;
  const api::JobStatus& before;

  Plan plan;
  api::JobStatus& status;     // of `plan`
  std::vector<Slot> slots;    // all replicas that may run, in manifest order
  bool paused = false;        // suspended, suspending, not yet resumed, or without what a queue
                              // has to admit: nothing is to run
  bool spec_refused = false;  // no attempt can begin with it, and no configuration be made of it
  bool held = false;          // what runs is left as it is

  // Whether the steps of a job at work still apply.
  bool active() const { return !paused && !held && !status.finished(); }

  // Opens the next attempt, with the images of now: none of the pods seen belongs to it.
  void OpenNextAttempt();

  // Replicas of the role that the status, as it is being made, asks for.
  int32_t Wanted(const api::Role& role) const;
  // Null when there is no such pod of the current attempt.
  const ObservedPod* HeadPod() const;
  // What the head of this attempt said; null when it has said nothing.
  const HeadReport* Report() const;
  // Its uid is in the status as read.
  bool Counted(const ObservedPod& pod) const { return counted_.contains(pod.uid); }
  // Its label names an attempt that the job cannot have had. Nobody but a forger writes one.
  bool OfNoAttempt(const ObservedPod& pod) const;
  bool PodsLeft() const { return !seen.pods.empty(); }

  // Appends a stage, unless it is empty.
  void AddStage(Stage stage);
  void AddEvent(bool warning, std::string reason, std::string action, std::string note);
  // Asks for a pass at `time`; the earliest wins. Times that have come are passed over.
  void WakeAt(base::WallTime time);

 private:
  void FillSlots();

  std::unordered_set<std::string_view> counted_;
};

}  // namespace hetero::plan
