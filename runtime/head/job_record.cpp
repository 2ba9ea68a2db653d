#include "runtime/head/job_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/job/stream_digest.h"

namespace hetero::head {
namespace {

constexpr double kWhole = 0.9;  // of the longest time that a rank has trained

void SetTimes(const RankTotals& totals, v1::Progress& progress) {
  progress.set_train_seconds(totals.train_seconds);
  progress.set_data_wait_percent(totals.data_wait_percent);
  v1::PhaseSeconds& phases = *progress.mutable_phases();
  phases.set_wait(totals.phases.wait);
  phases.set_host_to_device(totals.phases.host_to_device);
  phases.set_forward(totals.phases.forward);
  phases.set_backward(totals.phases.backward);
  phases.set_all_reduce(totals.phases.all_reduce);
  phases.set_optimizer(totals.phases.optimizer);
  phases.set_checkpoint(totals.phases.checkpoint);
  phases.set_evaluation(totals.phases.evaluation);
  phases.set_other(totals.phases.other);
  v1::WaitSeconds& waits = *progress.mutable_waits();
  waits.set_no_worker(totals.waits.no_worker);
  waits.set_workers(totals.waits.workers);
  waits.set_transfer(totals.waits.transfer);
  waits.set_handover(totals.waits.handover);
}

// Sums that grow with every rank; of those that have not come back too.
RankTotals SumOfRanks(const JobRecord& record) {
  RankTotals sum;
  const auto add = [&sum](const RankTotals& totals) {
    sum.tickets_reissued += totals.tickets_reissued;
    sum.duplicates_dropped += totals.duplicates_dropped;
    sum.skipped_steps = std::max(sum.skipped_steps, totals.skipped_steps);  // all skip the same
  };
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) add(WholeTotals(member));
  }
  for (const auto& [key, member] : record.past.members) {
    RankTotals totals = FromHistory(member.rank_now());
    AddTotals(FromHistory(member.rank_earlier()), totals);
    add(totals);
  }
  return sum;
}

// Not missed when others left with the result: what it did after its last heartbeat it never told.
bool EndedUnheard(const MemberRecord& rank) { return rank.finished && !rank.finished->has_last(); }

// Rank 0; or, when the process that trained is gone with its word, who has come furthest: ranks
// step together, and a digest that covers the job is the same for all.
const MemberRecord* FirstToTell(const JobRecord& record) {
  const MemberRecord* teller = FindRank(record, 0);
  int64_t furthest = teller == nullptr ? 0 : teller->progress.step();
  if (furthest > 0 && !EndedUnheard(*teller)) return teller;
  for (const auto& [key, member] : record.members) {
    const v1::Progress& progress = member.progress;
    if (!member.trainer() || !progress.digest_covers_job() || progress.step() <= furthest) continue;
    furthest = progress.step();
    teller = &member;
  }
  return teller;
}

}  // namespace

int64_t UnixNs(base::WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double AgeAt(const JobRecord& record, base::Instant now) {
  const double age =
      base::ToSeconds(record.age + ((record.ended ? record.ended_at : now) - record.began));
  // Seconds of a history, in nanoseconds and back, may have become a little less.
  return record.attempts.empty() ? age : std::max(age, record.attempts.back().begin);
}

std::vector<v1::LossPoint> WholeLossCurve(const JobRecord& record) {
  const std::vector<v1::LossPoint>& now = record.loss_curve.points();
  std::vector<v1::LossPoint> whole;
  for (const v1::LossPoint& point : record.past.losses) {
    if (now.empty() || point.step() < now.front().step()) whole.push_back(point);
  }
  whole.insert(whole.end(), now.begin(), now.end());
  return whole;
}

RankTotals WholeTotals(const MemberRecord& member) {
  RankTotals totals = TotalsOf(member.progress);
  AddTotals(member.earlier_rank, totals);
  return totals;
}

const MemberRecord* FindRank(const JobRecord& record, int32_t rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= record.ranks.size()) return nullptr;
  const auto member = record.members.find(record.ranks[static_cast<size_t>(rank)]);
  return member == record.members.end() ? nullptr : &member->second;
}

std::vector<const MemberRecord*> TimedRanks(const JobRecord& record) {
  double longest = 0;
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) longest = std::max(longest, WholeTotals(member).train_seconds);
  }
  std::vector<const MemberRecord*> ranks;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer() || WholeTotals(member).train_seconds < kWhole * longest) continue;
    ranks.push_back(&member);
  }
  return ranks;
}

const MemberRecord* SlowestRank(const JobRecord& record) {
  const MemberRecord* slowest = nullptr;
  double most = 0;
  for (const MemberRecord* member : TimedRanks(record)) {
    const double waited = WholeTotals(*member).data_wait_percent;
    if (slowest != nullptr && waited <= most) continue;
    slowest = member;
    most = waited;
  }
  return slowest;
}

const MemberRecord* UnheardRank(const JobRecord& record) {
  const MemberRecord* unheard = nullptr;
  int64_t furthest = 0;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer()) continue;
    furthest = std::max(furthest, member.progress.step());
    const bool further_behind =
        unheard == nullptr || member.progress.step() < unheard->progress.step();
    if (EndedUnheard(member) && further_behind) unheard = &member;
  }
  return unheard == nullptr || unheard->progress.step() == furthest ? nullptr : unheard;
}

v1::Progress JobProgress(const JobRecord& record) {
  v1::Progress total;
  const MemberRecord* first = FirstToTell(record);
  if (first != nullptr) total = first->progress;
  const MemberRecord* slowest = SlowestRank(record);
  int64_t steps_in_time = 0;
  if (first != nullptr && slowest != nullptr) {
    const RankTotals totals = WholeTotals(*slowest);
    SetTimes(totals, total);
    if (total.digest_covers_job()) {
      total.set_samples_before(total.samples_consumed() - totals.samples);
    }
    steps_in_time = totals.steps;
  }

  job::StreamDigest digest;
  int64_t samples = 0;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer()) continue;
    const v1::Progress& progress = member.progress;
    digest += job::StreamDigest(progress.digest_high(), progress.digest_low());
    samples += progress.samples_consumed();
  }
  const RankTotals sum = SumOfRanks(record);
  total.set_tickets_reissued(sum.tickets_reissued);
  total.set_duplicates_dropped(sum.duplicates_dropped);
  total.set_skipped_steps(sum.skipped_steps);
  total.set_bad_samples(record.bad_samples.distinct());
  if (total.checkpoint_uri().empty()) total.set_checkpoint_uri(record.checkpoint_uri);
  if (total.ceiling_samples_per_second() <= 0) {
    total.set_ceiling_samples_per_second(record.past.ceiling_samples_per_second);
  }
  if (!total.digest_covers_job()) {
    total.set_samples_consumed(samples);
    total.set_digest_high(digest.high());
    total.set_digest_low(digest.low());
  }
  if (record.runs_scripts() && total.step() > 0) {
    // Ranks tell their own samples since their scripts began; steps of all are of one size.
    const double share =
        std::min(1.0, static_cast<double>(steps_in_time) / static_cast<double>(total.step()));
    total.set_samples_before(
        std::llround(static_cast<double>(total.samples_consumed()) * (1 - share)));
  }
  return total;
}

}  // namespace hetero::head
