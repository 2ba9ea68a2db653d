#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "operator/plan/cost.h"
#include "operator/plan/observed.h"

namespace hetero::plan {

// What a process remembers of the lives of one job's pods, to know what each costs, at the price
// that it had when its node was first seen, and that it is gone, when it is. One that begins
// without it loses no more than the account itself can tell (cost.h). Not thread-safe.
class PodLives {
 public:
  // `pods`: all that are there. `removed`: those that the store has let go of since the last call,
  // as they last were; one that is neither there nor here is taken to have gone just now. `nodes`:
  // those that hold them, as far as they can be seen. `account`: as it is stored.
  ObservedLives See(const api::Spec& spec, const std::optional<api::JobCost>& account,
                    const std::vector<std::shared_ptr<const ObservedPod>>& pods,
                    const std::vector<RemovedPod>& removed,
                    const std::map<std::string, ObservedNode>& nodes, base::WallTime now);
  // For an attempt to store this account, which has all that the last See() gave. Whether it was
  // stored, when no answer comes, the next See() finds out.
  void Offer(const std::optional<api::JobCost>& account);
  void Stored();

 private:
  struct Known {
    PodLife life;
    // Whether it still worked after one of these moments nobody has seen.
    std::optional<base::WallTime> deletion_asked;
    std::optional<base::WallTime> node_silent;
  };

  void Renew(const api::Spec& spec, const ObservedPod& pod,
             const std::map<std::string, ObservedNode>& nodes, Known& known);
  void Depart(const Known& known, const std::string& uid, base::WallTime gone);
  // What is known of one that is there, or has been heard of again after it had departed.
  Known TakeUp(const std::string& uid, std::map<std::string, Known>& before);

  static constexpr size_t kKept = 256;

  bool began_ = false;
  std::optional<api::JobCost> base_;     // the account that `known_` and `departed_` follow on
  std::optional<api::JobCost> offered_;  // to take its place
  std::set<std::string> offered_uids_;   // that are departed in it
  std::map<std::string, Known> known_;   // by uid
  std::vector<std::pair<std::string, PodLife>> departed_;  // in no status yet, with their uids
  std::set<std::string> departed_uids_;
  std::set<std::string> settled_;   // uids; an old list may bring one back
  std::vector<std::string> order_;  // of `settled_`
};

}  // namespace hetero::plan
