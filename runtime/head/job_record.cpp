#include "runtime/head/job_record.h"

#include <algorithm>

#include "runtime/job/stream_digest.h"

namespace hetero::head {
namespace {

constexpr double kWhole = 0.9;  // of the longest time that a rank has trained

}  // namespace

const MemberRecord* FindRank(const JobRecord& record, int32_t rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= record.ranks.size()) return nullptr;
  const auto member = record.members.find(record.ranks[static_cast<size_t>(rank)]);
  return member == record.members.end() ? nullptr : &member->second;
}

std::vector<const MemberRecord*> TimedRanks(const JobRecord& record) {
  double longest = 0;
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) longest = std::max(longest, member.progress.train_seconds());
  }
  std::vector<const MemberRecord*> ranks;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer() || member.progress.train_seconds() < kWhole * longest) continue;
    ranks.push_back(&member);
  }
  return ranks;
}

v1::Progress JobProgress(const JobRecord& record) {
  v1::Progress total;
  const MemberRecord* first = FindRank(record, 0);
  if (first != nullptr) total = first->progress;
  const std::vector<const MemberRecord*> timed = TimedRanks(record);
  const auto worst = std::max_element(
      timed.begin(), timed.end(), [](const MemberRecord* a, const MemberRecord* b) {
        return a->progress.data_wait_percent() < b->progress.data_wait_percent();
      });
  if (first != nullptr && worst != timed.end()) {
    const v1::Progress& from = (*worst)->progress;
    total.set_train_seconds(from.train_seconds());
    total.set_data_wait_percent(from.data_wait_percent());
    *total.mutable_phases() = from.phases();
    *total.mutable_waits() = from.waits();
  }

  job::StreamDigest digest;
  int64_t samples = 0;
  int64_t reissued = 0;
  int64_t duplicates = 0;
  int64_t skipped = 0;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer()) continue;
    const v1::Progress& progress = member.progress;
    digest += job::StreamDigest(progress.digest_high(), progress.digest_low());
    samples += progress.samples_consumed();
    reissued += progress.tickets_reissued();
    duplicates += progress.duplicates_dropped();
    skipped = std::max(skipped, progress.skipped_steps());  // all ranks skip the same steps
  }
  total.set_tickets_reissued(reissued);
  total.set_duplicates_dropped(duplicates);
  total.set_skipped_steps(skipped);
  total.set_bad_samples(record.bad_samples.distinct());
  if (!total.digest_covers_job()) {
    total.set_samples_consumed(samples);
    total.set_digest_high(digest.high());
    total.set_digest_low(digest.low());
  }
  return total;
}

}  // namespace hetero::head
