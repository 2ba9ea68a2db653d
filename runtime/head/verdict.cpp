#include "runtime/head/verdict.h"

#include <map>
#include <utility>

#include "absl/strings/numbers.h"

namespace hetero::head {
namespace {

constexpr double kMeasuredSeconds = 0.1;  // of work, before a worker's rate means something

insight::RoleSupply SupplyOf(const JobRecord& record, const api::Role& role) {
  insight::RoleSupply supply{.role = role.name, .price_per_hour = PricePerHour(role)};
  double rates = 0;
  int32_t measured = 0;
  for (const auto& [key, member] : record.members) {
    if (key.role != role.name) continue;
    ++supply.replicas;
    const double busy = member.counters.busy_seconds() + member.earlier.busy_seconds();
    if (busy < kMeasuredSeconds) continue;
    ++measured;
    rates += static_cast<double>(member.counters.samples() + member.earlier.samples()) / busy;
  }
  if (measured > 0) supply.samples_per_second = rates / measured;
  return supply;
}

}  // namespace

std::optional<double> PricePerHour(const api::Role& role) {
  double price = 0;
  if (!absl::SimpleAtod(role.price_per_hour, &price)) return std::nullopt;
  return price;
}

insight::SpeedVerdict JudgeSpeed(const JobRecord& record) {
  const MemberRecord* first = FindRank(record, 0);
  if (record.input_only || first == nullptr || first->progress.step() == 0) return {};
  const v1::Progress job = JobProgress(record);
  insight::SpeedEvidence evidence{.steps = job.step(),
                                  .samples = job.samples_consumed() - job.samples_before()};
  if (const MemberRecord* slowest = SlowestRank(record);
      job.digest_covers_job() || record.runs_scripts()) {
    evidence.steps = WholeTotals(*slowest).steps;  // in the time that the phases are of
  }
  if (job.ceiling_samples_per_second() > 0) {
    evidence.probed_ceiling = job.ceiling_samples_per_second();
  }
  for (const MemberRecord* member : TimedRanks(record)) {
    const RankTotals totals = WholeTotals(*member);
    evidence.ranks.push_back({.data_wait_percent = totals.data_wait_percent,
                              .phases = totals.phases,
                              .waits = totals.waits});
    if (!record.runs_scripts()) continue;
    // Between two batches a script trains, for all that is known.
    insight::PhaseSeconds& phases = evidence.ranks.back().phases;
    std::swap(phases.forward, phases.other);
  }
  double per_hour = 0;
  bool all_priced = true;
  for (const api::Role& role : record.job.spec.roles) {
    const std::optional<double> price = PricePerHour(role);
    all_priced = all_priced && price.has_value();
    per_hour += price.value_or(0) * role.replicas;
    if (role.type == api::RoleType::kCpuWorker) {
      evidence.supplies.push_back(SupplyOf(record, role));
    }
  }
  if (all_priced) evidence.price_per_hour = per_hour;
  return insight::JudgeSpeed(evidence);
}

std::string Verdict(const JobRecord& record) { return JudgeSpeed(record).sentence; }

}  // namespace hetero::head
