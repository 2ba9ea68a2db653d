#include "runtime/head/state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"

namespace hetero::head {
namespace {

// Ticks come ten times a second; a longer gap means that the head itself did not run, and says
// nothing about its members.
constexpr base::Duration kOwnPause = std::chrono::seconds(1);
constexpr size_t kNamedMembers = 5;
constexpr base::Duration kSizingInterval = std::chrono::seconds(1);

}  // namespace

State::State(Options options, Moment now)
    : options_(std::move(options)),
      plan_(options_.job.spec),
      started_(now.steady),
      last_tick_(now.steady),
      now_(now) {
  record_.job = options_.job;
  record_.input_only = options_.input_only;
  record_.created = options_.created;
  for (const RolePlan::Role& role : plan_.roles()) {
    if (!role.trainer) continue;
    for (int32_t index = 0; index < role.desired; ++index) {
      for (int32_t local = 0; local < role.local_ranks; ++local) {
        record_.ranks.push_back({role.name, index, local});
      }
    }
  }
}

std::vector<Action> State::Apply(const Event& event, Moment now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& e) { On(e); }, event);
  AdvanceJob();
  return std::exchange(actions_, {});
}

void State::On(const Tick&) {
  const base::Duration gap = now_.steady - last_tick_;
  last_tick_ = now_.steady;
  if (gap > kOwnPause) {
    for (auto& [key, member] : record_.members) {
      member.last_seen += gap;
      member.disconnected_at += gap;
    }
  }
  for (auto& [key, member] : record_.members) CheckSilence(member);
  for (const auto& [key, member] : record_.members) CheckReplacement(member);
  CheckStartupDeadline();
  SizeRoles();
}

void State::SizeRoles() {
  if (ending_ || record_.generation == 0 || now_.steady - sized_at_ < kSizingInterval) return;
  sized_at_ = now_.steady;
  record_.sizing = sizer_.Look(record_, now_.steady);
}

void State::On(const StopRequested& event) {
  if (ending_) return;
  AddNote(false, absl::StrCat("stop requested: ", event.reason));
  BeginEnding(v1::JobStatus::STOPPED, event.reason);
}

void State::AdvanceJob() {
  if (ended()) return;
  if (!ending_) {
    SettleCompletedJob();
    OpenOrTakeOverGeneration();
    ReplaceGeneration();
    UpdateRoster();
    if (AllRanksFinished()) BeginEnding(v1::JobStatus::SUCCEEDED, "training is complete");
  }
  if (!ending_ || (!AllSettled() && now_.steady < ending_->deadline)) return;

  // A stop that came too late to matter is not a stop.
  if (ending_->state == v1::JobStatus::STOPPED && AllRanksFinished()) {
    ending_->state = v1::JobStatus::SUCCEEDED;
  }
  record_.state = ending_->state;
  record_.ended = now_.wall;
  AddNote(false, absl::StrCat("job ended: ", v1::JobStatus::State_Name(record_.state)));
  actions_.push_back(EndJob{});
}

void State::OpenOrTakeOverGeneration() {
  if (record_.generation > 0) return;
  int64_t oldest = INT64_MAX;
  int64_t newest = 0;
  for (int32_t rank = 0; rank < plan_.world_size(); ++rank) {
    const MemberRecord* member = FindRank(record_, rank);
    if (member == nullptr || !member->registered()) return;
    oldest = std::min(oldest, member->hello.generation());
    newest = std::max(newest, member->hello.generation());
  }
  const bool take_over = newest > 0 && oldest == newest;
  if (!take_over && !MissingMembers().empty()) return;

  if (!take_over) {
    Open(newest + 1);
    return;
  }
  record_.state = v1::JobStatus::RUNNING;
  record_.generation = newest;
  RememberRanks();
  roster_ = CurrentRoster();
  std::vector<StreamId> trainers;
  for (const auto& [key, member] : record_.members) {
    if (member.connected() && member.trainer()) trainers.push_back(*member.stream);
  }
  AddNote(false, absl::StrCat("generation ", record_.generation, " goes on"));
  actions_.push_back(BroadcastRoster{std::move(trainers), roster_});
}

void State::Open(int64_t number) {
  record_.state = v1::JobStatus::RUNNING;
  record_.generation = number;
  RememberRanks();
  broken_since_.reset();
  roster_ = CurrentRoster();
  std::vector<StreamId> everyone;
  for (const auto& [key, member] : record_.members) {
    if (member.connected()) everyone.push_back(*member.stream);
  }
  AddNote(false, absl::StrCat("generation ", record_.generation, " opens with ", plan_.world_size(),
                              " ranks and ", roster_.cpu_workers_size(), " CPU workers"));
  actions_.push_back(OpenGeneration{std::move(everyone), CurrentGeneration()});
}

void State::RememberRanks() {
  incarnations_.clear();
  for (int32_t rank = 0; rank < plan_.world_size(); ++rank) {
    incarnations_.push_back(FindRank(record_, rank)->hello.identity().incarnation());
  }
}

bool State::AllRanksThere() const {
  for (int32_t rank = 0; rank < plan_.world_size(); ++rank) {
    const MemberRecord* member = FindRank(record_, rank);
    if (member == nullptr || !member->registered() || !member->connected()) return false;
  }
  return true;
}

bool State::PlaysInGeneration(const MemberRecord& trainer) const {
  const auto rank = static_cast<size_t>(trainer.rank);
  return rank < incarnations_.size() &&
         incarnations_[rank] == trainer.hello.identity().incarnation();
}

bool State::GenerationIsBroken() {
  const bool broken = std::any_of(
      record_.members.begin(), record_.members.end(),
      [this](const auto& e) { return e.second.broken_generation == record_.generation; });
  if (!broken) {
    broken_since_.reset();
    return false;
  }
  if (!broken_since_) broken_since_ = now_.steady;
  return now_.steady - *broken_since_ >= options_.broken_grace;
}

// The ranks stay the same; who plays them may not.
void State::ReplaceGeneration() {
  if (record_.generation == 0 || !AllRanksThere()) return;
  int64_t newest = record_.generation;
  bool replaced = false;
  for (int32_t rank = 0; rank < plan_.world_size(); ++rank) {
    const MemberRecord& member = *FindRank(record_, rank);
    replaced |= !PlaysInGeneration(member);
    newest = std::max(newest, member.hello.generation());
  }
  if (replaced || GenerationIsBroken()) Open(newest + 1);
}

// All ranks leave together, so when one has left with the result, every step is done and every
// checkpoint written. Who died in that moment is not missed; who noticed that may leave too.
void State::SettleCompletedJob() {
  if (options_.input_only) return;  // ranks that only read do not wait for each other
  const bool complete =
      std::any_of(record_.members.begin(), record_.members.end(), [](const auto& entry) {
        const MemberRecord& member = entry.second;
        return member.trainer() && member.finished && member.finished->ok() &&
               !member.finished->stopped();
      });
  if (!complete) return;
  for (auto& [key, member] : record_.members) {
    if (!member.trainer() || member.finished) continue;
    const size_t rank = static_cast<size_t>(member.rank);
    const bool newcomer =
        rank < incarnations_.size() && member.hello.identity().incarnation() != incarnations_[rank];
    if (member.lost || member.process_gone || newcomer) {
      AddNote(false, "is not needed any more", member.name);
      if (newcomer) SendStop(member, "training is complete");
      member.finished.emplace().set_ok(true);
    } else if (member.connected() && told_complete_.insert(*member.stream).second) {
      v1::HeadMessage message;
      message.mutable_command()->set_kind(v1::Command::COMPLETE);
      actions_.push_back(Send{*member.stream, std::move(message)});
    }
  }
}

void State::UpdateRoster() {
  if (record_.generation == 0) return;
  v1::Roster roster = CurrentRoster();
  if (google::protobuf::util::MessageDifferencer::Equals(roster, roster_)) return;
  roster_ = std::move(roster);
  std::vector<StreamId> trainers;
  for (const auto& [key, member] : record_.members) {
    if (member.trainer() && member.connected()) trainers.push_back(*member.stream);
  }
  actions_.push_back(BroadcastRoster{std::move(trainers), roster_});
}

void State::CheckStartupDeadline() {
  const int32_t seconds = record_.job.spec.run_policy.startup_deadline_seconds;
  if (ending_ || record_.generation > 0) return;
  if (now_.steady - started_ <= std::chrono::seconds(seconds)) return;
  std::vector<std::string> missing = MissingMembers();
  const std::string first = missing.empty() ? "" : missing.front();
  const size_t more = missing.size() > kNamedMembers ? missing.size() - kNamedMembers : 0;
  missing.resize(missing.size() - more);
  for (std::string& name : missing) {
    for (const auto& [key, member] : record_.members) {
      if (member.name == name && member.finished && !member.finished->message().empty()) {
        absl::StrAppend(&name, " (", member.finished->message(), ")");
        break;
      }
    }
  }
  std::string names = absl::StrJoin(missing, ", ");
  if (more > 0) absl::StrAppend(&names, " and ", more, " more");
  Fail(first, absl::StrCat("still missing after spec.runPolicy.startupDeadlineSeconds (", seconds,
                           " s): ", names, "; see their logs, or raise the deadline"));
}

std::vector<std::string> State::MissingMembers() const {
  std::vector<std::string> missing;
  for (const RolePlan::Role& role : plan_.roles()) {
    int32_t registered = 0;
    std::vector<std::string> absent;
    for (int32_t index = 0; index < role.limit; ++index) {
      for (int32_t local = 0; local < role.local_ranks; ++local) {
        const auto member = record_.members.find({role.name, index, local});
        if (member != record_.members.end() && member->second.registered()) {
          ++registered;
        } else {
          absent.push_back(MemberName(role, index, local));
        }
      }
    }
    const int32_t lacking = role.required * role.local_ranks - registered;
    for (int32_t i = 0; i < lacking; ++i) missing.push_back(absent[static_cast<size_t>(i)]);
  }
  return missing;
}

bool State::AllRanksFinished() const {
  for (int32_t rank = 0; rank < plan_.world_size(); ++rank) {
    const MemberRecord* member = FindRank(record_, rank);
    if (member == nullptr || !member->finished) return false;
    if (!member->finished->ok() || member->finished->stopped()) return false;
  }
  return plan_.world_size() > 0;
}

bool State::AllSettled() const {
  return std::all_of(record_.members.begin(), record_.members.end(),
                     [](const auto& entry) { return !entry.second.registered(); });
}

void State::Fail(const std::string& member, const std::string& message) {
  if (ending_) return;
  v1::Failure failure;
  failure.set_member(member);
  failure.set_message(message);
  record_.first_failure = std::move(failure);
  AddNote(true, absl::StrCat("job fails: ", message), member);
  BeginEnding(v1::JobStatus::FAILED,
              absl::StrCat(member.empty() ? "the job" : member, " failed: ", message));
}

void State::BeginEnding(v1::JobStatus::State state, const std::string& reason) {
  ending_ = Ending{state, now_.steady + options_.stop_grace};
  if (state == v1::JobStatus::STOPPED) record_.stop_reason = reason;
  for (const auto& [key, member] : record_.members) SendStop(member, reason);
}

void State::SendStop(const MemberRecord& member, const std::string& reason) {
  if (!member.connected() || member.finished) return;
  v1::HeadMessage message;
  message.mutable_command()->set_kind(v1::Command::STOP);
  message.mutable_command()->set_reason(reason);
  actions_.push_back(Send{*member.stream, std::move(message)});
}

void State::AddNote(bool warning, std::string message, const std::string& member) {
  actions_.push_back(Note{warning, std::move(message), member});
}

base::Duration State::member_timeout() const {
  return std::chrono::seconds(record_.job.spec.run_policy.member_timeout_seconds);
}

}  // namespace hetero::head
