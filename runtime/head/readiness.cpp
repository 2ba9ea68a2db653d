#include "runtime/head/readiness.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::head {
namespace {

std::string ValueOf(const v1::Ready& ready, const std::string& key) {
  const auto found = ready.environment().find(key);
  return found == ready.environment().end() ? "none" : found->second;
}

// Of one split: its number of samples says more than that its files differ.
void CompareSplit(const char* split, int64_t mine, int64_t theirs, const std::string& my_print,
                  const std::string& their_print, const std::string& their_name,
                  std::vector<std::string>& differences) {
  if (mine != theirs) {
    differences.push_back(
        absl::StrCat("has ", mine, " ", split, " samples, ", their_name, " ", theirs));
  } else if (my_print != their_print) {
    differences.push_back(absl::StrCat("has other ", split, " files (fingerprint ", my_print, ", ",
                                       their_name, " ", their_print, ")"));
  }
}

}  // namespace

std::string Differences(const v1::Ready& mine, const v1::Ready& theirs,
                        const std::string& their_name) {
  std::vector<std::string> differences;
  CompareSplit("training", mine.samples(), theirs.samples(), mine.fingerprint(),
               theirs.fingerprint(), their_name, differences);
  CompareSplit("validation", mine.validation_samples(), theirs.validation_samples(),
               mine.validation_fingerprint(), theirs.validation_fingerprint(), their_name,
               differences);
  std::set<std::string> keys;
  for (const auto& [key, value] : mine.environment()) keys.insert(key);
  for (const auto& [key, value] : theirs.environment()) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string here = ValueOf(mine, key), there = ValueOf(theirs, key);
    if (here == there) continue;
    differences.push_back(
        absl::StrCat("works with ", key, " ", here, ", ", their_name, " with ", there));
  }
  return absl::StrJoin(differences, "; ");
}

void Readiness::Take(MemberRecord& member, const v1::Ready& ready) {
  if (member.ready && Differences(*member.ready, ready, "").empty()) return;
  member.ready = ready;
  member.fits = false;
  member.unfit.clear();
}

void Readiness::FindReference() {
  if (reference_ && record_.generation == 0) {
    // Nobody works yet, so a process that was replaced is no measure for those that were not.
    const auto member = record_.members.find(reference_->key);
    const bool there = member != record_.members.end() && member->second.registered() &&
                       member->second.hello.identity().incarnation() == reference_->incarnation;
    if (!there) {
      reference_.reset();
      for (auto& [key, other] : record_.members) {
        other.fits = false;
        other.unfit.clear();
      }
    }
  }
  if (reference_) return;
  for (size_t rank = 0; rank < record_.ranks.size(); ++rank) {
    const MemberRecord* member = FindRank(record_, static_cast<int32_t>(rank));
    if (member == nullptr || !member->registered() || !member->ready) continue;
    reference_ = {.key = record_.ranks[rank],
                  .incarnation = member->hello.identity().incarnation(),
                  .name = member->name,
                  .ready = *member->ready};
    return;
  }
}

void Readiness::Judge(Moment now) {
  FindReference();
  if (!reference_) return;
  for (auto& [key, member] : record_.members) {
    if (!member.registered() || !member.ready || member.fits || !member.unfit.empty()) continue;
    const std::string other = key == reference_->key ? "the process before it" : reference_->name;
    const std::string differences = Differences(*member.ready, reference_->ready, other);
    if (differences.empty()) {
      member.fits = true;
    } else if (member.trainer()) {
      ending_.Fail(member.name,
                   absl::StrCat("does not see the data that ", other, " sees: it ", differences,
                                "; mount the same data and run the same image in every worker"),
                   now.steady);
      return;
    } else {
      Refuse(member, differences, now);
    }
  }
}

void Readiness::Refuse(MemberRecord& member, const std::string& reason, Moment now) {
  member.unfit = absl::StrCat("does not see the job's data: it ", reason);
  record_.faults.push_back(
      {.time = now.wall,
       .since = now.steady,
       .what = absl::StrCat(member.name, " ", member.unfit, "; the job goes on without it")});
  outbox_.AddNote(true, member.unfit, member.name);
  if (!member.connected()) return;
  v1::HeadMessage message;
  message.mutable_not_admitted()->set_reason(
      absl::StrCat(member.name, " ", member.unfit,
                   "; mount the same data, run the same image, and start it again"));
  outbox_.Add(Send{*member.stream, std::move(message)});
}

}  // namespace hetero::head
