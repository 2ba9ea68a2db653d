#include "runtime/head/state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/role_type.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/handshake/build.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/roster.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

// Ticks come ten times a second; a longer gap means that the head itself did not run, and says
// nothing about its members.
constexpr base::Duration kOwnPause = std::chrono::seconds(1);
constexpr base::Duration kSizingInterval = std::chrono::seconds(1);
// Above it who comes and goes is told ten times a second: to compare and to send the roster for
// each one would take seconds for all.
constexpr size_t kManyMembers = 64;

// With the grace of broken groups about eight minutes: longer than a network is usually away.
constexpr int kMostFruitless = 20;

JobRecord MakeRecord(const State::Options& options, const RolePlan& plan, Moment now) {
  JobRecord record;
  record.job = options.job;
  record.input_only = options.input_only;
  record.created = options.created;
  for (const RolePlan::Role& role : plan.roles()) {
    if (!role.trainer) continue;
    for (int32_t index = 0; index < role.desired; ++index) {
      for (int32_t local = 0; local < role.local_ranks; ++local) {
        record.ranks.push_back({role.name, index, local});
      }
    }
  }
  RestoreHistory(options.history, options.attempt, now, record);
  return record;
}

ScriptAgreement::Options AgreementOptions(const JobRecord& record) {
  ScriptAgreement::Options options{.ranks = static_cast<int32_t>(record.ranks.size())};
  const std::optional<api::Checkpoint>& checkpoint = record.job.spec.training.checkpoint;
  const auto seconds = checkpoint ? checkpoint->interval_seconds() : std::nullopt;
  if (seconds) options.checkpoint_interval = std::chrono::seconds(*seconds);
  return options;
}

bool LeftWithResult(const v1::Finished& finished) { return finished.ok() && !finished.stopped(); }

// Each because it was asked to, in whatever words.
bool AllRanksStopped(const JobRecord& record) {
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !member->finished || !member->finished->stopped()) return false;
  }
  return true;
}

}  // namespace

State::State(Options options, Moment now)
    : options_(std::move(options)),
      plan_(options_.job.spec),
      record_(MakeRecord(options_, plan_, now)),
      ending_(options_.stop_grace, record_, outbox_),
      members_(options_.redial_grace, options_.peers, plan_, record_, ending_, outbox_),
      readiness_(record_, ending_, outbox_),
      generations_(options_.broken_grace),
      agreement_(AgreementOptions(record_)),
      script_failures_(options_.broken_grace, record_),
      notices_(plan_, record_, outbox_),
      findings_(options_.job.spec),
      started_(now.steady),
      last_tick_(now.steady),
      now_(now) {}

std::vector<Action> State::Apply(const Event& event, Moment now) {
  if (superseded_) return {};
  now_ = now;
  effect_ = Effect::kAny;
  ticking_ = std::holds_alternative<Tick>(event);
  std::visit([this](const auto& e) { On(e); }, event);
  if (superseded_ || effect_ == Effect::kNone) return outbox_.Take();
  const bool had_ended = ended();
  AdvanceJob();
  if (ended() && !had_ended && !record_.input_only) {
    for (Note& found : findings_.Close(now_, record_)) outbox_.Add(std::move(found));
  }
  return outbox_.Take();
}

void State::On(const HelloReceived& event) {
  if (HearsOfSuccessor(event)) {
    superseded_ = true;
    outbox_.AddNote(
        true, absl::StrCat("a newer head has taken over, says ", event.hello.identity().role(), "-",
                           event.hello.identity().index()));
    outbox_.Add(StepDown{});
    return;
  }
  const MemberRecord* member = members_.Join(event, now_);
  if (member != nullptr) Greet(*member);
}

// Ranks alone are believed: what a CPU worker reads comes from outside, and one that was taken over
// must not end heads: its certificate is not one of a rank.
bool State::HearsOfSuccessor(const HelloReceived& event) const {
  const v1::Hello& hello = event.hello;
  if (ended() || options_.incarnation == 0) return false;
  if (hello.head_incarnation() <= options_.incarnation) return false;
  const absl::StatusOr<const RolePlan::Role*> role = plan_.Find(hello.identity());
  return role.ok() && (*role)->trainer &&
         options_.peers.Check(event.certified_as, api::kGpuWorkerType, "to tell of another head")
             .ok();
}

// The first message of a stream is always Welcome; what else the member has missed follows.
void State::Greet(const MemberRecord& member) {
  v1::HeadMessage welcome;
  welcome.mutable_welcome()->set_job_json(options_.job_json);
  welcome.mutable_welcome()->set_member_timeout_seconds(
      record_.job.spec.run_policy.member_timeout_seconds);
  welcome.mutable_welcome()->set_input_only(options_.input_only);
  welcome.mutable_welcome()->set_head_incarnation(options_.incarnation);
  const handshake::Build& build = handshake::ThisBuild();
  welcome.mutable_welcome()->mutable_build()->set_version(build.version);
  welcome.mutable_welcome()->mutable_build()->set_commit(build.commit);
  welcome.mutable_welcome()->mutable_build()->set_protocol(build.protocol);
  outbox_.Add(Send{*member.stream, std::move(welcome)});
  if (ending_.begun()) {
    ending_.SendStop(member, "the job is ending");
    return;
  }
  if (record_.generation == 0) return;
  v1::HeadMessage message;
  if (member.trainer() && !generations_.Plays(member)) return;  // the next one is its first
  if (member.hello.generation() < record_.generation) {
    if (member.trainer()) {
      *message.mutable_generation() = MakeGeneration(record_, plan_);
    } else {
      message.mutable_generation()->set_number(record_.generation);
    }
  } else if (!member.trainer()) {
    return;
  } else if (!roster_held_) {
    *message.mutable_roster() = MakeRoster(record_, plan_);
  }
  if (message.has_generation() || message.has_roster()) {
    outbox_.Add(Send{*member.stream, std::move(message)});
  }
  RepeatDecisions(member);
}

void State::On(const ReadyReceived& event) {
  MemberRecord* member = members_.Find(event.stream);
  if (member == nullptr) return;
  members_.Hear(*member, now_);
  Readiness::Take(*member, event.ready);
}

void State::On(const FinishedReceived& event) {
  MemberRecord* member = members_.Find(event.stream);
  if (member == nullptr) return;
  members_.Hear(*member, now_);
  if (event.finished.has_last()) TakeHeartbeat(*member, event.finished.last());
  const bool repeated = member->finished.has_value();
  // One that was let go, since others have the result, is told to stop and says that it was.
  if (!repeated || !LeftWithResult(*member->finished)) {
    member->finished = event.finished;
    LimitText(kMaxText, *member->finished->mutable_message());
    if (member->finished->has_last()) {
      member->finished->mutable_last()->clear_resources();  // long, and taken
      member->finished->mutable_last()->clear_lives();
    }
  }
  v1::HeadMessage ack;
  ack.mutable_finish_ack();
  outbox_.Add(Send{event.stream, std::move(ack)});
  if (!repeated && !ending_.begun()) TakeLastWord(*member, *member->finished);
}

void State::TakeLastWord(MemberRecord& member, const v1::Finished& finished) {
  const bool failed = !finished.ok() && !finished.stopped();
  outbox_.AddNote(failed, absl::StrCat("finished ", finished.message()), member.name);
  if (!member.trainer()) {
    if (failed) {
      const int64_t incarnation = member.hello.identity().incarnation();
      const size_t fault =
          OpenFault(member.name, incarnation,
                    absl::StrCat(member.name, " failed: ", finished.message()), now_, record_);
      record_.faults[fault].over = true;
    }
  } else if (finished.leaving() && !AllRanksStopped(record_)) {
    members_.Leave(member, now_);
  } else if (finished.stopped()) {
    ending_.Stop(absl::StrCat(member.name, " was asked to stop"), now_.steady);
  } else if (failed) {
    // Peers of a dead rank fail in their collectives before the head misses the dead one.
    for (const auto& [key, peer] : record_.members) {
      if (peer.trainer() && !peer.connected() && !peer.finished) {
        ending_.Fail(peer.name,
                     absl::StrCat("its connection to the head broke without a last word (then ",
                                  member.name, ": ", finished.message(), ")"),
                     now_.steady);
        return;
      }
    }
    ending_.FailByLastWord(member.name, finished.message(), now_.steady);
  }
}

void State::On(const StreamClosed& event) { members_.Disconnect(event, now_); }

void State::On(const Tick&) {
  const base::Duration gap = now_.steady - last_tick_;
  last_tick_ = now_.steady;
  if (gap > kOwnPause) members_.Excuse(gap);
  members_.CheckSilence(now_);
  CheckStartupDeadline();
  SizeRoles();
  if (!ending_.begun() && !record_.input_only) {
    for (Note& found : findings_.Look(now_, record_)) outbox_.Add(std::move(found));
  }
}

void State::AdvanceJob() {
  if (ended()) return;
  notices_.Settle(now_);
  if (!ending_.begun()) readiness_.Judge(now_);
  if (!ending_.begun()) {
    SettleCompletedJob();
    OpenOrTakeOverGeneration();
    notices_.Ask(agreement_, now_);
    AdvanceScripts();
    ReplaceGeneration();
    UpdateRoster();
    if (AllRanksFinished(record_)) ending_.Succeed(now_.steady);
  }
  ending_.Conclude(now_);
}

// All ranks leave together, so when one has left with the result, every step is done and every
// checkpoint written. Who died in that moment is not missed; who noticed that may leave too.
void State::SettleCompletedJob() {
  if (options_.input_only) return;  // ranks that only read do not wait for each other
  const bool complete =
      std::any_of(record_.members.begin(), record_.members.end(), [](const auto& entry) {
        const MemberRecord& member = entry.second;
        return member.trainer() && member.finished && LeftWithResult(*member.finished);
      });
  if (!complete) return;
  for (auto& [key, member] : record_.members) {
    const bool left = member.finished && member.finished->leaving();
    if (!member.trainer() || (member.finished && !left)) continue;
    // Under a head that has just taken over, who works in a generation says so when it joins.
    const bool newcomer =
        record_.generation > 0 ? !generations_.Plays(member) : member.hello.generation() == 0;
    if (member.lost || member.process_gone || newcomer || left) {
      outbox_.AddNote(false, "is not needed any more", member.name);
      if (newcomer) ending_.SendStop(member, "training is complete");
      member.finished.emplace().set_ok(true);
    } else if (member.connected() && told_complete_.insert(*member.stream).second) {
      v1::HeadMessage message;
      message.mutable_command()->set_kind(v1::Command::COMPLETE);
      outbox_.Add(Send{*member.stream, std::move(message)});
      TellAllEnded(member);
    }
  }
}

void State::OpenOrTakeOverGeneration() {
  if (record_.generation > 0) return;
  const std::optional<GenerationTracker::Beginning> first = generations_.First(record_);
  if (!first) return;
  if (!first->taken_over) {
    // Numbers rise over all attempts: a group is never taken for one of before.
    const int64_t number = std::max(first->number, record_.past.generation + 1);
    if (MissingMembers(record_, plan_).empty()) Open(number);
    return;
  }
  record_.state = v1::JobStatus::RUNNING;
  generations_.Begin(first->number, record_);
  roster_ = MakeRoster(record_, plan_);
  CloseHeadLoss(now_, record_);
  outbox_.AddNote(false, absl::StrCat("generation ", record_.generation, " goes on"));
  roster_held_ = AwaitsCpuWorkers(record_, plan_);
  if (!roster_held_) BroadcastCurrentRoster();
}

void State::ReplaceGeneration() {
  if (record_.generation == 0) return;
  const std::optional<int64_t> next = generations_.Next(record_, now_.steady);
  if (!next || ScriptsEndTheJob()) return;
  if (generations_.fruitless() >= kMostFruitless) {
    FailWithoutProgress();
  } else {
    Open(*next);
  }
}

void State::FailWithoutProgress() {
  std::string name;
  std::string why = "its ranks were replaced again and again";
  for (const auto& [key, member] : record_.members) {
    if (!member.trainer() || member.broken_generation != record_.generation) continue;
    name = member.name;
    why = member.progress.last_break().empty() ? "it broke" : member.progress.last_break();
  }
  ending_.Fail(name,
               absl::StrCat(generations_.fruitless(),
                            " generations in a row ended without a completed step, the last "
                            "because: ",
                            why, ". See the trainers' logs, and whether they reach each other"),
               now_.steady);
}

void State::Open(int64_t number) {
  CloseHeadLoss(now_, record_);
  record_.state = v1::JobStatus::RUNNING;
  generations_.Begin(number, record_);
  roster_ = MakeRoster(record_, plan_);
  roster_held_ = false;
  OpenGeneration opened;
  for (const auto& [key, member] : record_.members) {
    if (!member.connected()) continue;
    (member.trainer() ? opened.trainers : opened.workers).push_back(*member.stream);
  }
  outbox_.AddNote(
      false, absl::StrCat("generation ", record_.generation, " opens with ", plan_.world_size(),
                          " ranks and ", roster_.cpu_workers_size(), " CPU workers"));
  opened.generation = MakeGeneration(record_, plan_);
  outbox_.Add(std::move(opened));
}

void State::UpdateRoster() {
  if (record_.generation == 0 || effect_ == Effect::kNotWhoTakesPart) return;
  if (record_.members.size() > kManyMembers && !ticking_) return;
  if (roster_held_ && AwaitsCpuWorkers(record_, plan_)) return;
  v1::Roster roster = MakeRoster(record_, plan_);
  if (!std::exchange(roster_held_, false) &&
      google::protobuf::util::MessageDifferencer::Equals(roster, roster_))
    return;
  roster_ = std::move(roster);
  BroadcastCurrentRoster();
}

void State::BroadcastCurrentRoster() {
  std::vector<StreamId> trainers;
  for (const auto& [key, member] : record_.members) {
    if (member.trainer() && member.connected()) trainers.push_back(*member.stream);
  }
  outbox_.Add(BroadcastRoster{std::move(trainers), roster_});
}

void State::CheckStartupDeadline() {
  const int32_t seconds = record_.job.spec.run_policy.startup_deadline_seconds;
  if (ending_.begun() || record_.generation > 0) return;
  if (now_.steady - started_ <= std::chrono::seconds(seconds)) return;
  const std::vector<std::string> missing = MissingMembers(record_, plan_);
  const std::string first = missing.empty() ? "" : missing.front();
  ending_.Fail(first,
               absl::StrCat("still missing after spec.runPolicy.startupDeadlineSeconds (", seconds,
                            " s): ", DescribeMissing(record_, missing),
                            "; see their logs, or raise the deadline"),
               now_.steady);
}

void State::SizeRoles() {
  if (ending_.begun() || record_.generation == 0 || now_.steady - sized_at_ < kSizingInterval) {
    return;
  }
  sized_at_ = now_.steady;
  record_.sizing = sizer_.Look(record_, now_.steady);
}

}  // namespace hetero::head
