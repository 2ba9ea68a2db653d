#include "runtime/head/generation_tracker.h"

#include <algorithm>

namespace hetero::head {
namespace {

bool AllRanksConnected(const JobRecord& record) {
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !member->takes_part() || !member->connected()) return false;
  }
  return true;
}

}  // namespace

std::optional<GenerationTracker::Beginning> GenerationTracker::First(
    const JobRecord& record) const {
  int64_t oldest = INT64_MAX;
  int64_t newest = 0;
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !member->takes_part()) return std::nullopt;
    oldest = std::min(oldest, member->hello.generation());
    newest = std::max(newest, member->hello.generation());
  }
  if (newest > 0 && oldest == newest) return Beginning{.number = newest, .taken_over = true};
  return Beginning{.number = newest + 1};
}

std::optional<int64_t> GenerationTracker::Next(const JobRecord& record, base::Instant now) {
  stepped_ = stepped_ || AnyStep(record);
  if (!AllRanksConnected(record)) return std::nullopt;
  int64_t newest = record.generation;
  bool replaced = false;
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord& member = *FindRank(record, static_cast<int32_t>(rank));
    replaced |= !Plays(member);
    newest = std::max(newest, member.hello.generation());
  }
  if (!replaced && !GroupBroken(record, now)) return std::nullopt;
  return newest + 1;
}

void GenerationTracker::Begin(int64_t number, JobRecord& record) {
  fruitless_ = record.generation == 0 ? 0 : fruitless();
  stepped_ = false;
  record.generation = number;
  broken_since_.reset();
  incarnations_.clear();
  steps_.clear();
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord& member = *FindRank(record, static_cast<int32_t>(rank));
    incarnations_.push_back(member.hello.identity().incarnation());
    steps_.push_back(member.progress.step());
  }
}

void GenerationTracker::BeginAt(int64_t step) {
  for (int64_t& known : steps_) known = std::min(known, step);
}

// What a process took over from the others when it joined, it has not done.
bool GenerationTracker::AnyStep(const JobRecord& record) const {
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record, static_cast<int32_t>(rank));
    if (member == nullptr || !Plays(*member)) continue;
    const v1::Progress& progress = member->progress;
    if (progress.step() > std::max(steps_[rank], progress.first_step())) return true;
  }
  return false;
}

bool GenerationTracker::Plays(const MemberRecord& trainer) const {
  const auto rank = static_cast<size_t>(trainer.rank);
  return rank < incarnations_.size() &&
         incarnations_[rank] == trainer.hello.identity().incarnation();
}

bool GenerationTracker::GroupBroken(const JobRecord& record, base::Instant now) {
  const bool broken = std::any_of(record.members.begin(), record.members.end(), [&](const auto& e) {
    const MemberRecord& member = e.second;
    return member.trainer() && Plays(member) && member.broken_generation == record.generation;
  });
  if (!broken) {
    broken_since_.reset();
    return false;
  }
  if (!broken_since_) broken_since_ = now;
  base::Duration grace = broken_grace_;
  for (int i = 1; i < fruitless() && grace < kLongestGrace; ++i) grace *= 2;
  return now - *broken_since_ >= std::min(grace, kLongestGrace);
}

}  // namespace hetero::head
