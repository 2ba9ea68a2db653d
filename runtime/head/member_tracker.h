#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "runtime/head/event.h"
#include "runtime/head/job_ending.h"
#include "runtime/head/job_record.h"
#include "runtime/head/outbox.h"
#include "runtime/head/peer_roles.h"
#include "runtime/head/role_plan.h"

namespace hetero::head {

// Which process holds the place of each member, on which stream, and whether it is lost: it joins,
// falls silent, comes back, is replaced by a newer process. Keeps the record's members and the
// faults that come of it. Not thread-safe.
class MemberTracker {
 public:
  // A CPU worker whose stream broke stays in the roster for `redial_grace`.
  MemberTracker(base::Duration redial_grace, PeerRoles peers, RolePlan& plan, JobRecord& record,
                JobEnding& ending, Outbox& outbox)
      : redial_grace_(redial_grace),
        peers_(std::move(peers)),
        plan_(plan),
        record_(record),
        ending_(ending),
        outbox_(outbox) {}

  // Gives the process behind `event` its place, which the plan gets where the number of CPU workers
  // has been raised since the job began; nullptr when it is refused, or its stream has a
  // member already.
  MemberRecord* Join(const HelloReceived& event, Moment now);
  // nullptr for a stream that is no member's.
  MemberRecord* Find(StreamId stream);
  // The record of a member by its name ("gpu-1.3"), new if it has not joined: the process
  // `incarnation` had its place before this head began. nullptr when the job has no such member, or
  // has heard of a newer process.
  MemberRecord* PlaceOf(const std::string& name, int64_t incarnation, Moment now);

  // A message came from `member`.
  void Hear(MemberRecord& member, Moment now) { Return(member, "heard again", now); }
  void Disconnect(const StreamClosed& event, Moment now);
  // Nothing for a member that has said its last word, or is lost already.
  void Lose(MemberRecord& member, const std::string& why, Moment now);
  // A trainer has said that it leaves, as it was asked to: another process takes its place.
  void Leave(MemberRecord& member, Moment now);
  // Loses those who were silent or out of reach for too long, trainers of the head before this one
  // that have not come back among them, and fails the job when nobody takes the place of a lost
  // trainer, or the process that does has not opened its dataset.
  void CheckSilence(Moment now);
  // The head itself did not run for `gap`: that is no silence of theirs.
  void Excuse(base::Duration gap);

 private:
  void TurnAway(StreamId stream, const std::string& name, std::string reason);
  bool Admit(const HelloReceived& event, const RolePlan::Role& role, MemberRecord& member,
             Moment now);
  bool TakePlace(const v1::Identity& identity, const RolePlan::Role& role, MemberRecord& member,
                 Moment now);
  void WarnOfOtherCommit(const v1::Hello& hello, const std::string& name);
  void Replace(MemberRecord& member, const v1::Identity& newer, Moment now);
  void CloseFaultOfEarlier(int64_t incarnation, MemberRecord& member, Moment now);
  void Return(MemberRecord& member, const std::string& how, Moment now);
  void CheckSilence(MemberRecord& member, Moment now);
  void CheckWhoStaysAway(Moment now);
  void CheckReplacement(const MemberRecord& member, Moment now);

  const base::Duration redial_grace_;
  const PeerRoles peers_;
  RolePlan& plan_;
  JobRecord& record_;
  JobEnding& ending_;
  Outbox& outbox_;
  std::map<StreamId, MemberKey> streams_;
  base::Duration excused_{};  // since the head began
};

}  // namespace hetero::head
