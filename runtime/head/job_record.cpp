#include "runtime/head/job_record.h"

#include <algorithm>

#include "runtime/job/stream_digest.h"

namespace hetero::head {

const MemberRecord* FindRank(const JobRecord& record, int32_t rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= record.ranks.size()) return nullptr;
  const auto member = record.members.find(record.ranks[static_cast<size_t>(rank)]);
  return member == record.members.end() ? nullptr : &member->second;
}

v1::Progress JobProgress(const JobRecord& record) {
  v1::Progress total;
  const MemberRecord* first = FindRank(record, 0);
  if (first != nullptr) total = first->progress;

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
