#include "runtime/head/readiness.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/head/fault_log.h"
#include "runtime/head/text_limits.h"

namespace hetero::head {
namespace {

constexpr size_t kShown = 120;  // bytes of a value
constexpr size_t kNamedDifferences = 8;

std::string Shown(std::string value) {
  LimitText(kShown, value);
  return value;
}

// Of objects: MakeReady().
constexpr char kVersionsOf[] = "versions of ";

using Values = google::protobuf::Map<std::string, std::string>;

std::string ValueOf(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "none" : found->second;
}

bool FindOtherVersions(const v1::Ready& mine, const v1::Ready& theirs) {
  return std::any_of(mine.environment().begin(), mine.environment().end(), [&](const auto& entry) {
    return absl::StartsWith(entry.first, kVersionsOf) &&
           entry.second != ValueOf(theirs.environment(), entry.first);
  });
}

const char* RemedyOf(const v1::Ready& mine, const v1::Ready& theirs) {
  return FindOtherVersions(mine, theirs)
             ? "put the objects back, or suspend the job and let it go on with the new ones"
             : "mount the same data and run the same image in every worker";
}

// Of one split: its number of samples says more than that its files differ.
void CompareSplit(const char* split, int64_t mine, int64_t theirs, const std::string& my_print,
                  const std::string& their_print, const std::string& their_name,
                  std::vector<std::string>& differences) {
  if (mine != theirs) {
    differences.push_back(
        absl::StrCat("has ", mine, " ", split, " samples, ", their_name, " ", theirs));
  } else if (my_print != their_print) {
    differences.push_back(absl::StrCat("has other ", split, " files (fingerprint ", Shown(my_print),
                                       ", ", their_name, " ", Shown(their_print), ")"));
  }
}

void CompareValues(const Values& mine, const Values& theirs, const std::string& their_name,
                   std::vector<std::string>& differences) {
  std::set<std::string> keys;
  for (const auto& [key, value] : mine) keys.insert(key);
  for (const auto& [key, value] : theirs) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string here = ValueOf(mine, key), there = ValueOf(theirs, key);
    if (here == there) continue;
    if (absl::StartsWith(key, kVersionsOf)) {
      differences.push_back(absl::StrCat("finds other ", Shown(key), " than ", their_name,
                                         ": an object was written over since the job began"));
      continue;
    }
    differences.push_back(absl::StrCat("works with ", Shown(key), " ", Shown(here), ", ",
                                       their_name, " with ", Shown(there)));
  }
}

std::string Joined(std::vector<std::string> differences) {
  if (const size_t count = differences.size(); count > kNamedDifferences) {
    differences.resize(kNamedDifferences);
    differences.push_back(absl::StrCat("and ", count - kNamedDifferences, " more"));
  }
  return absl::StrJoin(differences, "; ");
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
  CompareValues(mine.environment(), theirs.environment(), their_name, differences);
  return Joined(std::move(differences));
}

std::string PythonDifferences(const v1::Ready& mine, const v1::Ready& theirs,
                              const std::string& their_name) {
  std::vector<std::string> differences;
  CompareValues(mine.python(), theirs.python(), their_name, differences);
  return Joined(std::move(differences));
}

void Readiness::Take(MemberRecord& member, const v1::Ready& ready) {
  if (!member.unfit.empty()) return;
  if (member.ready && Differences(*member.ready, ready, "").empty() &&
      PythonDifferences(*member.ready, ready, "").empty()) {
    return;
  }
  member.ready = ready;
  member.fits = false;
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

std::string Readiness::OtherPython(const MemberRecord& member, const MemberKey& key) {
  if (member.ready->python().empty()) return "";
  if (python_reference_ && record_.generation == 0) {  // as FindReference()
    const auto found = record_.members.find(python_reference_->key);
    if (found == record_.members.end() || !found->second.registered() ||
        found->second.hello.identity().incarnation() != python_reference_->incarnation) {
      python_reference_.reset();
      // The others were measured by it.
      for (auto& [other, worker] : record_.members) {
        if (worker.trainer()) continue;
        worker.fits = false;
        worker.unfit.clear();
      }
    }
  }
  if (!python_reference_) {
    python_reference_ = {.key = key,
                         .incarnation = member.hello.identity().incarnation(),
                         .name = member.name,
                         .ready = *member.ready};
    return "";
  }
  const std::string other =
      key == python_reference_->key ? "the process before it" : python_reference_->name;
  return PythonDifferences(*member.ready, python_reference_->ready, other);
}

void Readiness::Judge(Moment now) {
  FindReference();
  if (!reference_) return;
  for (auto& [key, member] : record_.members) {
    if (!member.registered() || !member.ready || member.fits || !member.unfit.empty()) continue;
    const std::string other = key == reference_->key ? "the process before it" : reference_->name;
    const std::string differences = Differences(*member.ready, reference_->ready, other);
    const std::string python = differences.empty() ? OtherPython(member, key) : "";
    if (!python.empty()) {
      Refuse(member, absl::StrCat("would make other samples: it ", python),
             "run the same image in every CPU worker", now);
    } else if (differences.empty()) {
      member.fits = true;
    } else if (member.trainer()) {
      ending_.Fail(member.name,
                   absl::StrCat("does not see the data that ", other, " sees: it ", differences,
                                "; ", RemedyOf(*member.ready, reference_->ready)),
                   now.steady);
      return;
    } else {
      Refuse(member, absl::StrCat("does not see the job's data: it ", differences),
             RemedyOf(*member.ready, reference_->ready), now);
    }
  }
}

void Readiness::Refuse(MemberRecord& member, const std::string& reason, const char* remedy,
                       Moment now) {
  member.unfit = reason;
  const size_t fault = OpenFault(
      member.name, member.hello.identity().incarnation(),
      absl::StrCat(member.name, " ", member.unfit, "; the job goes on without it"), now, record_);
  record_.faults[fault].over = true;
  outbox_.AddNote(true, member.unfit, member.name);
  if (!member.connected()) return;
  v1::HeadMessage message;
  message.mutable_not_admitted()->set_reason(
      absl::StrCat(member.name, " ", member.unfit, "; ", remedy));
  outbox_.Add(Send{*member.stream, std::move(message)});
}

}  // namespace hetero::head
