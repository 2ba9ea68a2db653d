#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/head/event.h"
#include "runtime/head/job_record.h"
#include "runtime/head/role_plan.h"
#include "runtime/head/role_sizer.h"

namespace hetero::head {

// All decisions of the head: who is a member, when the generation opens, when and how the job ends.
// No I/O and no clock: time comes with each event. Single-writer; not thread-safe.
//
// Life of a job: WAITING until every trainer and minReplicas of each CPU role have joined (or
// startupDeadlineSeconds are over), RUNNING in generation 1, then an ending: members are told to
// stop and have stop_grace for their last word before the record is complete (EndJob).
//
// A trainer that is lost does not end the job: when all ranks are there again, one of them as a new
// process, the next generation opens with the same ranks. It opens too when all processes live but
// the group between them broke. A lost trainer whom nobody has replaced after
// startupDeadlineSeconds fails the job. So does any lost rank of an input-only job. Once one rank
// has left with the result, all is done, and nobody begins anew.
//
// State is soft: when the head process is replaced, members come back with the generation they work
// in, and it is taken over instead of opening a new one.
class State {
 public:
  struct Options {
    api::HeteroTrainingJob job;
    std::string job_json;  // for Welcome
    bool input_only = false;
    base::WallTime created;
    base::Duration stop_grace = std::chrono::seconds(2);
    // A CPU worker whose stream broke stays in the roster this long.
    base::Duration redial_grace = std::chrono::milliseconds(500);
    // From the first word of a broken group until the next generation, when all processes live: the
    // cause is most often a death that shows a moment later.
    base::Duration broken_grace = std::chrono::seconds(1);
  };
  State(Options options, Moment now);

  std::vector<Action> Apply(const Event& event, Moment now);

  const JobRecord& record() const { return record_; }
  const RolePlan& plan() const { return plan_; }
  bool ended() const { return record_.ended.has_value(); }

 private:
  struct Ending {
    v1::JobStatus::State state;
    base::Instant deadline;
  };

  void On(const HelloReceived& event);
  void On(const HeartbeatReceived& event);
  void On(const FinishedReceived& event);
  void On(const StreamClosed& event);
  void On(const Tick& event);
  void On(const StopRequested& event);
  void On(const FailureReported& event);
  void On(const ProcessEnded& event);

  // Members (state_members.cpp).
  bool Admit(const HelloReceived& event, const RolePlan::Role& role, MemberRecord& member);
  void Replace(MemberRecord& member, const v1::Identity& newer);
  void Greet(MemberRecord& member);
  void TakeHeartbeat(MemberRecord& member, const v1::Heartbeat& heartbeat);
  void TakeBadSamples(MemberRecord& member, const v1::Heartbeat& heartbeat);
  void Lose(MemberRecord& member, const std::string& why);
  void Return(MemberRecord& member, const std::string& how);
  void CheckSilence(MemberRecord& member);
  void CheckReplacement(const MemberRecord& member);
  // The record of a rank, new if it has not joined; nullptr when there is no such rank.
  MemberRecord* RankNamed(const std::string& name);
  MemberRecord* FindStream(StreamId stream);
  v1::Roster CurrentRoster() const;
  v1::Generation CurrentGeneration() const;

  // The job (state.cpp).
  void AdvanceJob();
  void OpenOrTakeOverGeneration();
  void ReplaceGeneration();
  bool AllRanksThere() const;
  // Whether this very process is one of the current generation's ranks.
  bool PlaysInGeneration(const MemberRecord& trainer) const;
  bool GenerationIsBroken();
  void SettleCompletedJob();
  void Open(int64_t number);
  void RememberRanks();
  void UpdateRoster();
  void CheckStartupDeadline();
  void SizeRoles();
  bool AllRanksFinished() const;
  bool AllSettled() const;
  std::vector<std::string> MissingMembers() const;
  void Fail(const std::string& member, const std::string& message);
  void BeginEnding(v1::JobStatus::State state, const std::string& reason);
  void SendStop(const MemberRecord& member, const std::string& reason);
  void AddNote(bool warning, std::string message, const std::string& member = "");
  base::Duration member_timeout() const;

  Options options_;
  RolePlan plan_;
  JobRecord record_;
  std::map<StreamId, MemberKey> streams_;
  std::optional<Ending> ending_;
  std::optional<std::string> failed_by_last_word_;  // member whose Finished failed the job
  v1::Roster roster_;                               // as last sent
  std::vector<int64_t> incarnations_;               // of the ranks of the current generation
  std::optional<base::Instant> broken_since_;
  std::set<StreamId> told_complete_;
  const base::Instant started_;
  base::Instant last_tick_;
  RoleSizer sizer_;
  base::Instant sized_at_{};
  Moment now_;
  std::vector<Action> actions_;
};

}  // namespace hetero::head
