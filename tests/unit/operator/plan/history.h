#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {

// One random life of one job: a model cluster in which everything goes wrong for a while, an
// operator that sees it late and dies between any two calls, then calm. Everything follows from the
// seed.
class History {
 public:
  // With `traced` every event and call is kept for Trace().
  History(int seed, bool traced);
  ~History();

  // What was broken first; none: all rules held and the job came to its end.
  std::optional<std::string> Run();
  std::string Trace() const;
  const api::JobStatus& status() const { return world_->status(); }

 private:
  // The world (history_world.cpp).
  Job RandomJob();
  void DisturbWorld();
  void DisturbPod(const std::string& pod);
  void StopInOrder(const std::string& pod);
  void CrashHead();
  void EndStopping(const std::string& pod);
  void MoveWorld(double pace);
  void LetHeadSpeak(double pace);
  void LetHeadFind();
  void EndTraining(bool head_is_heard);
  void DisturbGang();
  void DisturbQueue();
  void MoveQueue(double pace);
  void HealWorld();

  // The operator (history.cpp).
  void See(bool all);
  void SeePods(std::vector<std::shared_ptr<const ObservedPod>> pods);
  void OperatorPass(bool may_die);
  void RestartOperator();
  bool Settled() const;
  bool HoldsQuota() const;
  bool WasAdmitted(const std::string& role, int index) const;

  // The rules.
  void CheckWrite(const Plan& plan);
  void CheckCost(const api::JobStatus& was, const api::JobStatus& is);
  void CheckSizes(const api::JobStatus& status);
  void CheckFindings(const Plan& plan);
  void CheckNobodyWasForgotten();
  void CheckNoTrainerLeft(const api::JobStatus& status);
  void CheckEffect(const Effect& effect);
  void CheckRelease(const ObservedWorkload& workload);
  void CheckCreation(const CreatePod& pod);
  void CheckDeletion(const DeleteChild& deletion);
  void CheckEnd();
  void CheckFinalCost();
  void Break(const std::string& rule);

  bool Chance(double probability);
  int Roll(int sides);  // 0 .. sides - 1
  void Note(const std::string& line);

  std::mt19937 random_;
  const bool traced_;
  std::vector<std::string> trace_;
  std::optional<std::string> broken_;

  std::optional<ModelCluster> world_;
  bool training_over_ = false;
  bool priced_ = false;             // an account is kept
  bool ganged_ = false;             // a scheduler places its pods together
  bool failing_ = false;            // the training itself comes to a bad end
  std::set<std::string> stopping_;  // uids of pods that were told to stop in order

  Observed view_;
  std::shared_ptr<const ObservedJob> planned_;  // the job that the plan being carried out is for
  std::vector<std::shared_ptr<const ObservedWorkload>> planned_workloads_;  // seen when it was made
  std::optional<HeadTarget> followed_;
  std::set<std::string> settled_;
  Backoff backoff_;
  PodLives lives_;
  base::WallTime pods_seen_;         // when the pods of `view_` were those of the world
  std::vector<RemovedPod> removed_;  // that `view_` lacks since, and no pass has been told of
  std::set<std::string> charged_;    // uids that have ever been in status.uncounted
  std::set<std::string> told_;       // rules and members of which there was an event
  bool last_idle_ = false;
};

}  // namespace hetero::plan
