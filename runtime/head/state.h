#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/head/event.h"
#include "runtime/head/finding_watch.h"
#include "runtime/head/generation_tracker.h"
#include "runtime/head/history_restore.h"
#include "runtime/head/job_ending.h"
#include "runtime/head/job_record.h"
#include "runtime/head/member_tracker.h"
#include "runtime/head/notices.h"
#include "runtime/head/outbox.h"
#include "runtime/head/peer_roles.h"
#include "runtime/head/readiness.h"
#include "runtime/head/role_plan.h"
#include "runtime/head/role_sizer.h"
#include "runtime/head/script_agreement.h"
#include "runtime/head/script_failures.h"

namespace hetero::head {

// All decisions of the head: who is a member (MemberTracker), when a generation opens
// (GenerationTracker), when and how the job ends (JobEnding). No I/O and no clock: time comes with
// each event. Single-writer; not thread-safe.
//
// Life of a job: WAITING until every trainer and minReplicas of each CPU role have joined and see
// the same data (Readiness), or startupDeadlineSeconds are over; RUNNING in generation 1, then an
// ending: members are told to stop and have stop_grace for their last word before the record is
// complete (EndJob).
//
// A trainer that is lost does not end the job: when all ranks are there again, one of them as a new
// process, the next generation opens with the same ranks. It opens too when all processes live but
// the group between them broke. A lost trainer whom nobody has replaced after
// startupDeadlineSeconds fails the job, or whose replacement has not opened its dataset by then. So
// does any lost rank of an input-only job, and a long row of generations without a completed step.
// A trainer that leaves because it was asked to is waited for like a lost one; when all of them
// have, the job is stopped. Once one rank has left with the result, all is done, and nobody starts
// over.
//
// State is soft: when the head process is replaced, members come back with the generation they work
// in, and it is taken over instead of opening a new one. What they cannot tell is in the history
// that the head before left (history_restore.h). A head that was only thought dead hears of its
// successor from the first rank that has met it, and from then on decides nothing.
class State {
 public:
  struct Options {
    api::HeteroTrainingJob job;
    std::string job_json;  // for Welcome
    bool input_only = false;
    PeerRoles peers{base::TlsOptions{.plain_text = true}};  // as whom members may join
    base::WallTime created;
    int64_t incarnation = 0;  // of this head's process; 0: not known
    AttemptInfo attempt;
    v1::History history;  // of the heads before this one; default: there were none
    JobEnding::Graces stop_grace{.trainers = std::chrono::seconds(2),
                                 .workers = std::chrono::seconds(2)};
    // A CPU worker whose stream broke stays in the roster this long.
    base::Duration redial_grace = std::chrono::milliseconds(500);
    // From the first word of a broken group until the next generation, when all processes live.
    base::Duration broken_grace = std::chrono::seconds(1);
  };
  State(Options options, Moment now);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::vector<Action> Apply(const Event& event, Moment now);

  const JobRecord& record() const { return record_; }
  const RolePlan& plan() const { return plan_; }
  bool ended() const { return record_.ended.has_value(); }
  bool superseded() const { return superseded_; }  // by a newer head, before the end

 private:
  void On(const HelloReceived& event);
  void On(const ReadyReceived& event);
  void On(const HeartbeatReceived& event);
  void On(const FinishedReceived& event);
  void On(const ScriptWordReceived& event);
  void On(const StreamClosed& event);
  void On(const Tick& event);
  void On(const StopRequested& event);
  void On(const FailureReported& event);
  void On(const ProcessEnded& event);
  void On(const NoticesReceived& event) { notices_.Take(event.notices, now_); }
  void TakeWordOfUnmet(const ProcessEnded& event);
  void TakeFaultOfUnmet(const ProcessEnded& event);

  // Whether a rank knows a newer head than this one.
  bool HearsOfSuccessor(const HelloReceived& event) const;
  void Greet(const MemberRecord& member);
  void TakeHeartbeat(MemberRecord& member, const v1::Heartbeat& heartbeat);
  void TakeLastWord(MemberRecord& member, const v1::Finished& finished);

  // Of a job whose ranks run scripts (state_scripts.cpp); the others do nothing here.
  void TakeScriptFailure(const MemberRecord& member, const v1::ScriptFailure& failure);
  void AdvanceScripts();
  void AdvanceStop();
  void TellDecisions();
  void RepeatDecisions(const MemberRecord& member);
  void TellAllEnded(const MemberRecord& member);
  // Whether no generation follows the one that ended.
  bool ScriptsEndTheJob();
  // Stops a job of scripts as soon as they have saved. False: it is to be stopped at once.
  bool StopScripts(const std::string& reason);
  // Whether the job stops by itself once all scripts have saved.
  bool SaveScriptsFirst(const std::string& reason);
  // Whether ranks work in a generation whose agreements this head has not heard of yet.
  bool HearsOfScriptsSoon() const;

  void AdvanceJob();
  void SettleCompletedJob();
  void OpenOrTakeOverGeneration();
  void ReplaceGeneration();
  void FailWithoutProgress();
  void Open(int64_t number);
  void UpdateRoster();
  void BroadcastCurrentRoster();
  void CheckStartupDeadline();
  void SizeRoles();

  const Options options_;
  RolePlan plan_;
  JobRecord record_;
  Outbox outbox_;
  JobEnding ending_;
  MemberTracker members_;
  Readiness readiness_;
  GenerationTracker generations_;
  ScriptAgreement agreement_;
  ScriptFailures script_failures_;
  Notices notices_;
  RoleSizer sizer_;
  FindingWatch findings_;
  // What the event that is looked at may have changed, and no Tick has looked at yet.
  enum class Effect { kAny, kNotWhoTakesPart, kNone };
  Effect effect_ = Effect::kAny;
  v1::Roster roster_;  // as last sent
  // It was taken over and is not sent yet: trainers have the one of the head before.
  bool roster_held_ = false;
  bool ticking_ = false;  // the event that is looked at is a Tick
  std::set<StreamId> told_complete_;
  struct Stopping {  // when all scripts have saved
    std::string reason;
    base::Instant deadline;
  };
  std::optional<Stopping> stopping_;
  std::optional<Stopping> stop_wanted_;  // tried until its deadline
  int64_t agreed_generation_ = 0;        // whose scripts agreed where they begin
  bool superseded_ = false;
  const base::Instant started_;
  base::Instant last_tick_;
  base::Instant sized_at_{};
  Moment now_;  // of the event being applied
};

}  // namespace hetero::head
