#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "operator/plan/effect.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// What this process has done to one job's objects and its stores do not show yet: laid over what
// they show, so that nothing is created or deleted twice in the meantime. An entry ends when the
// store shows it, or after its patience: an object that came and went between two passes is
// believed in for that long. For a pod that is short, since pods come and go; that one of the job's
// own few objects is gone has grave consequences (all pods are recreated), and a watch may be very
// late. Not thread-safe.
class Expectations {
 public:
  static constexpr base::Duration kPatience = std::chrono::seconds(5);
  static constexpr base::Duration kGoingPatience = std::chrono::seconds(1);
  static constexpr base::Duration kObjectPatience = std::chrono::seconds(60);

  void PodCreated(std::shared_ptr<const plan::ObservedPod> pod, base::Instant now);
  void ObjectCreated(plan::ChildKind kind, std::shared_ptr<const plan::ObservedObject> object,
                     base::Instant now);
  // As it is now; `replaced`: the version that was written over, empty if it has just been made.
  void WorkloadWritten(std::shared_ptr<const plan::ObservedWorkload> workload,
                       const std::string& replaced, base::Instant now);
  // The API has shown it Terminating, whatever was believed: it still holds its name. Believed in
  // for a second, since its end is near.
  void StillThere(std::shared_ptr<const plan::ObservedPod> pod, base::Instant now);
  // `gone_by`: when it should be gone; already past: it is gone now.
  void Deleted(const std::string& uid, base::WallTime gone_by, base::Instant now);

  void Overlay(plan::Observed& observed, base::Instant now, base::WallTime wall_now);
  // Until the oldest entry ends by itself; none without entries.
  std::optional<base::Duration> Remaining(base::Instant now) const;

 private:
  struct Creation {
    std::shared_ptr<const plan::ObservedPod> pod;  // or object
    plan::ChildKind kind = plan::ChildKind::kPod;
    std::shared_ptr<const plan::ObservedObject> object;
    base::Instant until;
  };
  struct Deletion {
    base::WallTime gone_by;
    base::Instant until;
  };

  struct Writing {
    std::shared_ptr<const plan::ObservedWorkload> workload;
    std::vector<std::string> replaced;  // versions
    base::Instant until;
  };

  void OverlayWorkloads(plan::Observed& observed);
  void OverlayPodGroups(plan::Observed& observed);
  void OverlayPods(plan::Observed& observed, base::WallTime wall_now);
  void OverlayObject(plan::ChildKind kind, std::shared_ptr<const plan::ObservedObject>& shown);

  std::map<std::string, Creation> created_;  // by uid
  std::map<std::string, Deletion> deleted_;  // by uid
  std::map<std::string, Writing> written_;   // by uid
};

}  // namespace hetero::reconcile
