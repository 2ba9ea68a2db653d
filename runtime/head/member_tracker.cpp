#include "runtime/head/member_tracker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/role_type.h"
#include "base/version.h"
#include "runtime/handshake/build.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/history_restore.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

// What a new process counts anew, and what its first heartbeat sets.
void ForgetSums(v1::Progress& progress) {
  progress.clear_train_seconds();
  progress.clear_phases();
  progress.clear_waits();
  progress.clear_data_wait_percent();
  progress.clear_tickets_reissued();
  progress.clear_duplicates_dropped();
  progress.clear_skipped_steps();
  progress.set_first_step(progress.step());
  progress.set_samples_before(progress.samples_consumed());
}

// They are told to everybody, and kept.
void LimitTexts(v1::Hello& hello) {
  for (std::string* text : {hello.mutable_address(), hello.mutable_node(), hello.mutable_version(),
                            hello.mutable_commit()}) {
    LimitText(kMaxListedText, *text);
  }
}

Refuse MakeRefusal(StreamId stream, std::string reason, bool superseded) {
  Refuse refusal{.stream = stream};
  refusal.refused.set_reason(std::move(reason));
  refusal.refused.set_superseded(superseded);
  return refusal;
}

// What a process that worked under an earlier head did again, that head has counted.
void NoteRankZero(const v1::Hello& hello, StepsDone& done) {
  if (hello.identity().incarnation() == done.incarnation) return;
  done.incarnation = hello.identity().incarnation();
  done.before = done.furthest;
  done.counted = hello.generation() > 0;
}

}  // namespace

MemberRecord* MemberTracker::Join(const HelloReceived& event, Moment now) {
  if (streams_.contains(event.stream)) return nullptr;
  const v1::Identity& identity = event.hello.identity();
  const absl::StatusOr<const RolePlan::Role*> role = plan_.Find(identity);
  if (!role.ok()) {
    TurnAway(event.stream, "", std::string(role.status().message()));
    return nullptr;
  }
  const std::string name = MemberName(**role, identity.index(), identity.local_rank());
  const char* type = (*role)->trainer ? api::kGpuWorkerType : api::kCpuWorkerType;
  if (const absl::Status certified =
          peers_.Check(event.certified_as, type, absl::StrCat("to join as ", name));
      !certified.ok()) {
    TurnAway(event.stream, name, std::string(certified.message()));
    return nullptr;
  }
  const absl::Status met = handshake::CheckPeers(name,
                                                 {.version = event.hello.version(),
                                                  .commit = event.hello.commit(),
                                                  .protocol = event.hello.protocol()},
                                                 "the head", handshake::ThisBuild());
  if (!met.ok()) {
    TurnAway(event.stream, name, std::string(met.message()));
    return nullptr;
  }
  // It is on its way out, and what it says of its own end is not about this attempt.
  const int32_t attempt = record_.attempts.empty() ? 0 : record_.attempts.back().number;
  if (identity.attempt() > 0 && identity.attempt() < attempt) {
    outbox_.Add(MakeRefusal(event.stream,
                            absl::StrCat(name, " belongs to attempt ", identity.attempt(),
                                         ", and this is attempt ", attempt),
                            true));
    return nullptr;
  }
  plan_.MakeRoom(**role, identity.index());
  MemberRecord& member =
      record_.members[{identity.role(), identity.index(), identity.local_rank()}];
  return Admit(event, **role, member, now) ? &member : nullptr;
}

// Those who wait for `name` are told why it does not come (empty: nobody does). A stranger says
// nothing of one that is there.
void MemberTracker::TurnAway(StreamId stream, const std::string& name, std::string reason) {
  LimitText(kMaxText, reason);
  outbox_.AddNote(true, absl::StrCat("refused: ", reason));
  const bool there =
      std::any_of(record_.members.begin(), record_.members.end(),
                  [&](const auto& m) { return m.second.name == name && m.second.registered(); });
  if (!there && !name.empty()) record_.refusals[name] = reason;
  outbox_.Add(MakeRefusal(stream, std::move(reason), false));
}

bool MemberTracker::Admit(const HelloReceived& event, const RolePlan::Role& role,
                          MemberRecord& member, Moment now) {
  v1::Hello hello = event.hello;
  LimitTexts(hello);
  const v1::Identity& identity = event.hello.identity();
  const bool first_time = member.name.empty();
  if (!first_time) {
    const int64_t known = member.hello.identity().incarnation();
    if (identity.incarnation() < known) {
      outbox_.Add(MakeRefusal(
          event.stream, absl::StrCat("a newer process of ", member.name, " has joined"), true));
      return false;
    }
    if (identity.incarnation() > known) {
      Replace(member, identity, now);
    } else if (member.connected()) {
      streams_.erase(*member.stream);
      outbox_.Add(CloseStream{*member.stream});
    }
  }
  if (first_time) {
    if (!TakePlace(identity, role, member, now)) {
      outbox_.Add(MakeRefusal(
          event.stream, absl::StrCat("a newer process of ", member.name, " has joined"), true));
      record_.members.erase({identity.role(), identity.index(), identity.local_rank()});
      return false;
    }
    outbox_.AddNote(false, "joined", member.name);
    WarnOfOtherCommit(hello, member.name);
    DateHeadLoss(base::Duration(event.hello.headless_ns()), now, record_);
  }
  record_.refusals.erase(member.name);
  member.hello = std::move(hello);
  member.stream = event.stream;
  streams_[event.stream] = {identity.role(), identity.index(), identity.local_rank()};
  if (member.rank == 0) NoteRankZero(member.hello, record_.steps_done);
  Return(member, "connected again", now);
  return true;
}

// Builds of one version may differ too: a rebuilt image must not stop a developer's job, but
// whoever looks for a difference should be told.
void MemberTracker::WarnOfOtherCommit(const v1::Hello& hello, const std::string& name) {
  const std::string member = base::FullVersion(base::kVersion, hello.commit());
  const std::string head = base::FullVersion();
  if (hello.commit().empty() || member == head) return;
  outbox_.AddNote(true, absl::StrCat("runs ", member, ", the head ", head), name);
}

// The fault that a head before this one entered struck the process before this one.
void MemberTracker::CloseFaultOfEarlier(int64_t incarnation, MemberRecord& member, Moment now) {
  if (!member.open_fault || record_.faults[*member.open_fault].incarnation == incarnation) return;
  CloseFault(*member.open_fault, kReplaced, /*over=*/true, now, record_);
  member.open_fault.reset();
}

void MemberTracker::Replace(MemberRecord& member, const v1::Identity& newer, Moment now) {
  if (member.connected()) {
    streams_.erase(*member.stream);
    outbox_.Add(MakeRefusal(*member.stream,
                            absl::StrCat("a newer process of ", member.name, " has joined"), true));
    member.stream.reset();
  }
  AddCounters(member.counters, member.earlier);
  member.counters.Clear();
  AddCosts(member.operator_costs, member.earlier_operator_costs);
  member.operator_costs.clear();
  member.use.OnProcessReplaced();
  AddTotals(TotalsOf(member.progress), member.earlier_rank);
  ForgetSums(member.progress);
  // One that left when it was not needed comes back as a new process: no fault.
  const bool left = !member.trainer() && member.finished && member.finished->ok();
  if (!left) ++member.restarts;
  member.finished.reset();
  if (!ending_.begun() && !left && !member.open_fault) {
    const size_t fault = OpenFault(member.name, member.hello.identity().incarnation(),
                                   absl::StrCat(member.name, " was ", kReplaced), now, record_);
    record_.faults[fault].over = true;
  }
  if (record_.input_only && member.trainer() && record_.generation > 0) {
    ending_.Fail(member.name, "its process was replaced by a new one after reading had begun",
                 now.steady);
  }
  member.joined_at = now.steady;
  member.broken_generation = 0;
  member.ready.reset();
  member.fits = false;
  member.unfit.clear();
  CloseFaultOfEarlier(newer.incarnation(), member, now);
}

MemberRecord* MemberTracker::Find(StreamId stream) {
  const auto key = streams_.find(stream);
  if (key == streams_.end()) return nullptr;
  return &record_.members.at(key->second);
}

MemberRecord* MemberTracker::PlaceOf(const std::string& name, int64_t incarnation, Moment now) {
  const std::optional<MemberKey> key = plan_.KeyOf(name);
  if (!key) return nullptr;
  MemberRecord& member = record_.members[*key];
  if (!member.name.empty()) return &member;
  v1::Identity identity;
  identity.set_role(key->role);
  identity.set_index(key->index);
  identity.set_local_rank(key->local_rank);
  identity.set_incarnation(incarnation);
  const RolePlan::Role& role = **plan_.Find(identity);
  if (TakePlace(identity, role, member, now)) return &member;
  record_.members.erase(*key);
  return nullptr;
}

// False: a newer process was there before this head.
bool MemberTracker::TakePlace(const v1::Identity& identity, const RolePlan::Role& role,
                              MemberRecord& member, Moment now) {
  member.name = MemberName(role, identity.index(), identity.local_rank());
  if (!TakeUpPlace({identity.role(), identity.index(), identity.local_rank()}, identity,
                   ending_.begun(), now, record_, member)) {
    return false;
  }
  if (role.trainer) {
    member.rank = role.first_rank + identity.index() * role.local_ranks + identity.local_rank();
  }
  *member.hello.mutable_identity() = identity;
  member.first_incarnation = identity.incarnation();
  member.joined_at = now.steady;
  CloseFaultOfEarlier(identity.incarnation(), member, now);
  return true;
}

void MemberTracker::Disconnect(const StreamClosed& event, Moment now) {
  MemberRecord* member = Find(event.stream);
  streams_.erase(event.stream);
  if (member == nullptr) return;
  member->stream.reset();
  member->disconnected_at = now.steady;
  member->process_gone = event.process_gone;
  if (event.process_gone) Lose(*member, "its process ended", now);
}

void MemberTracker::CheckSilence(Moment now) {
  CheckWhoStaysAway(now);
  for (auto& [key, member] : record_.members) CheckSilence(member, now);
  for (const auto& [key, member] : record_.members) CheckReplacement(member, now);
}

void MemberTracker::CheckSilence(MemberRecord& member, Moment now) {
  if (!member.registered()) return;
  const base::Duration timeout =
      std::chrono::seconds(record_.job.spec.run_policy.member_timeout_seconds);
  const auto over = [now](base::Instant since, base::Duration limit) {
    return now.steady - since > limit;
  };
  if (member.connected()) {
    if (!over(member.last_seen, timeout)) return;
    Lose(member,
         absl::StrFormat("silent for more than %g s (spec.runPolicy.memberTimeoutSeconds)",
                         base::ToSeconds(timeout)),
         now);
  } else if (!member.trainer()) {
    if (over(member.disconnected_at, std::min(redial_grace_, timeout))) {
      Lose(member, "its connection to the head broke", now);
    }
  } else if (over(member.disconnected_at, timeout)) {
    Lose(member,
         absl::StrFormat("its connection to the head broke and it was not back within %g s "
                         "(spec.runPolicy.memberTimeoutSeconds)",
                         base::ToSeconds(timeout)),
         now);
  }
}

// One that hangs since before this head began has no connection here that could break, and nobody
// else who starts processes knows that it hangs.
void MemberTracker::CheckWhoStaysAway(Moment now) {
  const base::Duration timeout =
      std::chrono::seconds(record_.job.spec.run_policy.member_timeout_seconds);
  if (now.steady - record_.began - excused_ <= timeout) return;
  record_.all_had_time = true;
  if (record_.past.members.empty()) return;
  std::vector<std::pair<std::string, int64_t>> away;  // whom to lose: that takes from `past`
  for (const auto& [key, history] : record_.past.members) {
    if (history.left() || history.attempt() != record_.attempts.back().number) continue;
    v1::Identity identity;
    identity.set_role(key.role);
    identity.set_index(key.index);
    identity.set_local_rank(key.local_rank);
    const absl::StatusOr<const RolePlan::Role*> role = plan_.Find(identity);
    if (!role.ok()) continue;
    // Of a CPU worker that has ended it is known already; whether another takes its place is not.
    if (!(*role)->trainer && history.ended()) continue;
    away.emplace_back(MemberName(**role, key.index, key.local_rank), history.incarnation());
  }
  for (const auto& [name, incarnation] : away) {
    MemberRecord* member = PlaceOf(name, incarnation, now);
    if (member == nullptr) continue;
    Lose(*member,
         absl::StrFormat("it did not come back to the head that took over within %g s "
                         "(spec.runPolicy.memberTimeoutSeconds)",
                         base::ToSeconds(timeout)),
         now);
  }
}

void MemberTracker::Lose(MemberRecord& member, const std::string& why, Moment now) {
  if (member.finished || member.lost) return;
  member.lost = true;
  member.lost_at = now.steady;
  if (ending_.begun()) return;
  outbox_.AddNote(true, absl::StrCat("lost: ", why), member.name);
  member.open_fault = OpenFault(member.name, member.hello.identity().incarnation(),
                                absl::StrCat(member.name, " was lost: ", why), now, record_);
  // Nobody holds the place in the stream of a rank that only reads.
  if (record_.input_only && member.trainer() && record_.generation > 0) {
    ending_.Fail(member.name, why, now.steady);
  }
}

void MemberTracker::Leave(MemberRecord& member, Moment now) {
  member.lost_at = now.steady;
  if (ending_.begun() || member.open_fault) return;
  member.open_fault =
      OpenFault(member.name, member.hello.identity().incarnation(),
                absl::StrCat(member.name, " left, as it was asked to"), now, record_);
}

// Before the first generation the startup deadline looks after those who are missing.
void MemberTracker::CheckReplacement(const MemberRecord& member, Moment now) {
  const bool left = member.finished && member.finished->leaving();
  if (ending_.begun() || !member.trainer() || record_.generation == 0) return;
  const int32_t seconds = record_.job.spec.run_policy.startup_deadline_seconds;
  if (member.registered() && !member.ready &&
      now.steady - member.joined_at > std::chrono::seconds(seconds)) {
    ending_.Fail(member.name,
                 absl::StrCat("joined in the place of another process; its dataset is not open ",
                              "after spec.runPolicy.startupDeadlineSeconds (", seconds,
                              " s); see its log, and whether it reaches the dataset, or raise the "
                              "deadline"),
                 now.steady);
    return;
  }
  if (!member.lost && !left) return;
  if (now.steady - member.lost_at <= std::chrono::seconds(seconds)) return;
  const std::string what =
      member.open_fault ? record_.faults[*member.open_fault].what : member.name + " was lost";
  ending_.Fail(member.name,
               absl::StrCat(what,
                            "; no new process took its place within "
                            "spec.runPolicy.startupDeadlineSeconds (",
                            seconds, " s)"),
               now.steady);
}

void MemberTracker::Return(MemberRecord& member, const std::string& how, Moment now) {
  member.last_seen = now.steady;
  if (member.finished && member.finished->leaving()) return;  // its last word, once more
  member.lost = false;
  member.process_gone = false;
  if (!member.open_fault) return;
  CloseFault(*member.open_fault, how, /*over=*/false, now, record_);
  outbox_.AddNote(false, how, member.name);
  member.open_fault.reset();
}

void MemberTracker::Excuse(base::Duration gap) {
  excused_ += gap;
  for (auto& [key, member] : record_.members) {
    member.last_seen += gap;
    member.disconnected_at += gap;
    member.joined_at += gap;
  }
}

}  // namespace hetero::head
