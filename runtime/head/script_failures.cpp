#include "runtime/head/script_failures.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/ends_of_text.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

constexpr size_t kMostRemembered = 16;
constexpr size_t kMaxLine = 240;

// "RuntimeError: no such column": what a traceback ends with.
std::string LastLine(const v1::ScriptFailure& failure) {
  const std::string text(absl::StripTrailingAsciiWhitespace(failure.message()));
  return base::ToUtf8(text.substr(text.rfind('\n') + 1), kMaxLine);
}

int64_t IncarnationOf(const MemberRecord& member) { return member.hello.identity().incarnation(); }

// What scripts say that lost another one: its own exception is printed before its connections end,
// but its process may end after theirs. As Python's sockets, Gloo and NCCL have it.
bool BlamesAnother(const v1::ScriptFailure& failure) {
  const std::string line = absl::AsciiStrToLower(LastLine(failure));
  static constexpr const char* kSigns[] = {"connection",     "broken pipe", "brokenpipe",
                                           "socket timeout", "distbackend", "distnetwork",
                                           "tcpstore",       "nccl"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&line](const char* sign) { return line.find(sign) != std::string::npos; });
}

// Whoever kills a script from outside may do so at the same step by chance.
bool KilledFromOutside(const v1::ScriptFailure& failure) {
  return failure.signal() == SIGKILL || failure.signal() == SIGTERM || failure.signal() == SIGINT;
}

}  // namespace

std::optional<ScriptFailures::End> ScriptFailures::Take(const std::string& member,
                                                        const v1::ScriptFailure& failure,
                                                        base::Instant now) {
  const int64_t generation = failure.generation();
  // A head that has just taken over hears of it before it knows the generation.
  const bool current = record_.generation == 0 || generation == record_.generation;
  if (generation <= 0 || !current) return std::nullopt;
  const auto known = std::find_if(
      record_.script_failures.begin(), record_.script_failures.end(),
      [generation](const v1::ScriptFailureHistory& f) { return f.generation() == generation; });
  if (known != record_.script_failures.end()) return std::nullopt;
  if (generation != generation_) {
    generation_ = generation;
    told_.clear();
    first_rank_.reset();
  }
  if (told_.empty()) {
    since_ = now;
    processes_.clear();
    for (size_t rank = 0; rank < record_.ranks.size(); ++rank) {
      const MemberRecord* process = FindRank(record_, static_cast<int32_t>(rank));
      processes_.push_back(process == nullptr ? 0 : IncarnationOf(*process));
    }
  }
  const auto [entry, fresh] = told_.try_emplace(failure.rank(), Told{failure, member});
  if (!fresh) return std::nullopt;
  v1::ScriptFailure& told = entry->second.failure;
  told.set_message(base::EndsOfText(told.message(), kMaxText));
  if (!first_rank_) first_rank_ = failure.rank();
  if (failure.fatal()) return End{member, told.message()};
  return std::nullopt;
}

// A crash breaks the connections of the others, whose words may come before those of who crashed.
const ScriptFailures::Told& ScriptFailures::First() const {
  const Told& first = told_.at(*first_rank_);
  if (!BlamesAnother(first.failure) && IsAlike(first.failure)) return first;
  for (const bool blaming : {false, true}) {
    for (const auto& [rank, told] : told_) {
      if (BlamesAnother(told.failure) == blaming && IsAlike(told.failure)) return told;
    }
  }
  for (const auto& [rank, told] : told_) {
    const int32_t signal = told.failure.signal();
    if (signal != 0 && signal != SIGTERM && signal != SIGABRT) return told;
  }
  if (!BlamesAnother(first.failure)) return first;
  for (const auto& [rank, told] : told_) {
    if (!BlamesAnother(told.failure)) return told;
  }
  return first;
}

bool ScriptFailures::IsAlike(const v1::ScriptFailure& failure) const {
  if (KilledFromOutside(failure)) return false;
  const std::string line = LastLine(failure);
  std::set<int64_t> generations{generation_};
  for (const v1::ScriptFailureHistory& before : record_.script_failures) {
    if (before.step() != failure.step() || before.last_line() != line) continue;
    generations.insert(before.generation());
  }
  return generations.size() >= static_cast<size_t>(kAlike);
}

bool ScriptFailures::AnotherRankIsGone() const {
  for (int32_t rank = 0; rank < static_cast<int32_t>(record_.ranks.size()); ++rank) {
    const MemberRecord* member = told_.contains(rank) ? nullptr : FindRank(record_, rank);
    if (member == nullptr) continue;
    // A new process in its place may be quicker than the grace.
    const auto at = static_cast<size_t>(rank);
    const int64_t before = at < processes_.size() ? processes_[at] : 0;
    const bool replaced = before != 0 && before != IncarnationOf(*member);
    if (!member->registered() || !member->connected() || replaced) return true;
  }
  return false;
}

void ScriptFailures::Remember(bool with_lines) {
  std::set<std::pair<int64_t, std::string>> lines;
  for (const auto& [rank, told] : told_) {
    std::string line = LastLine(told.failure);
    if (!lines.emplace(told.failure.step(), line).second) continue;
    v1::ScriptFailureHistory& entry = record_.script_failures.emplace_back();
    entry.set_generation(generation_);
    entry.set_step(told.failure.step());
    if (with_lines && !KilledFromOutside(told.failure)) entry.set_last_line(std::move(line));
    if (lines.size() == static_cast<size_t>(kAlike)) break;
  }
  auto& all = record_.script_failures;
  if (all.size() > kMostRemembered) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMostRemembered));
  }
}

std::optional<ScriptFailures::End> ScriptFailures::Judge(bool closing, Moment now) {
  if (told_.empty() || generation_ != record_.generation) return std::nullopt;
  const bool all = told_.size() == record_.ranks.size();
  if (!closing && !all && now.steady - since_ < grace_) return std::nullopt;

  const bool excused = AnotherRankIsGone();
  const Told first = First();
  const bool alike = IsAlike(first.failure);
  Remember(/*with_lines=*/!excused);
  told_.clear();
  if (excused) return std::nullopt;
  std::string what = first.failure.message();
  Fault& fault = record_.faults.emplace_back();
  fault.time = now.wall;
  fault.since = since_;
  fault.member = first.member;
  fault.what = what;
  fault.over = true;  // no process of ours is gone
  open_fault_ = record_.faults.size() - 1;

  const int32_t allowed = record_.job.spec.run_policy.max_restarts;
  std::string why;
  if (alike) {
    why = absl::StrCat("failed alike three times at step ", first.failure.step(),
                       ", so it would again: ");
  } else if (record_.script_restarts + record_.past.script_restarts >= allowed) {
    why = absl::StrCat("runPolicy.maxRestarts allows ", allowed,
                       allowed == 1 ? " restart: " : " restarts: ");
  } else {
    ++record_.script_restarts;
    if (!record_.script_failure) {
      record_.script_failure.emplace().set_member(first.member);
      record_.script_failure->set_message(base::EndsOfText(what, kMaxText));
    }
    return std::nullopt;
  }
  return End{first.member, base::EndsOfText(absl::StrCat(why, what), kMaxText)};
}

void ScriptFailures::Recover(Moment now) {
  if (!open_fault_) return;
  Fault& fault = record_.faults[*open_fault_];
  fault.recovery_seconds = std::max(0.0, base::ToSeconds(now.steady - fault.since));
  open_fault_.reset();
}

}  // namespace hetero::head
