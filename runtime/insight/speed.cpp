#include "runtime/insight/speed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/insight/figures.h"

namespace hetero::insight {
namespace {

constexpr double kInputBoundPercent = 10;
constexpr double kMainCause = 0.5;     // of all waiting
constexpr double kSpareSupply = 1.1;   // fewer replicas must still meet the demand this many times
constexpr double kWorthSaying = 1.05;  // speed-ups below are noise
constexpr int32_t kMostAdded = 8;      // replicas that are predicted beyond the present ones
constexpr double kSecondsPerHour = 3600;

// Of the steps themselves.
double StepSeconds(const PhaseSeconds& p) {
  return p.wait + p.host_to_device + p.forward + p.backward + p.all_reduce + p.optimizer;
}

// The slowest rank's own work; the least that any rank waited for the others is the reduction's.
double BusySeconds(const std::vector<RankTime>& ranks) {
  double work = 0;
  double reduce = std::numeric_limits<double>::infinity();
  for (const RankTime& rank : ranks) {
    const PhaseSeconds& p = rank.phases;
    work = std::max(work, p.host_to_device + p.forward + p.backward + p.optimizer);
    reduce = std::min(reduce, p.all_reduce);
  }
  return work + reduce;
}

const RankTime& WorstRank(const SpeedEvidence& evidence) {
  return *std::max_element(evidence.ranks.begin(), evidence.ranks.end(),
                           [](const RankTime& a, const RankTime& b) {
                             return a.data_wait_percent < b.data_wait_percent;
                           });
}

std::optional<double> DollarsPer1000Steps(const SpeedEvidence& evidence, const RoleSupply& role,
                                          int32_t replicas, double rate) {
  if (!evidence.price_per_hour || !role.price_per_hour || rate <= 0 || evidence.steps == 0) {
    return std::nullopt;
  }
  const double per_hour =
      *evidence.price_per_hour + (replicas - role.replicas) * *role.price_per_hour;
  const double samples =
      1000.0 * static_cast<double>(evidence.samples) / static_cast<double>(evidence.steps);
  return per_hour / kSecondsPerHour * samples / rate;
}

// The role whose replicas do most for their price, or the fastest ones.
const RoleSupply* BestRole(const SpeedEvidence& evidence) {
  const RoleSupply* best = nullptr;
  const auto value = [](const RoleSupply& role) {
    return role.samples_per_second / role.price_per_hour.value_or(1);
  };
  for (const RoleSupply& role : evidence.supplies) {
    if (role.samples_per_second <= 0 || role.replicas == 0) continue;
    if (best == nullptr || value(role) > value(*best)) best = &role;
  }
  return best;
}

struct Cause {
  const char* words;
  bool workers_help;
};

Cause MainCause(const WaitSeconds& waits) {
  const double all = waits.no_worker + waits.workers + waits.transfer + waits.handover;
  if (all <= 0) return {"", true};
  if (waits.no_worker > kMainCause * all) return {", mostly without a connected CPU worker", true};
  if (waits.transfer > kMainCause * all) return {", mostly for its transfer", false};
  if (waits.handover > kMainCause * all) {
    return {", mostly for a core of the trainer to take it over", false};
  }
  return {"", true};
}

std::string Replicas(int32_t count, const std::string& role) {
  return absl::StrCat(count, " ", role, count == 1 ? " replica" : " replicas");
}

std::string Money(const std::optional<double>& now, const std::optional<double>& then) {
  if (!now || !then) return "";
  const double change = *then - *now;
  return absl::StrFormat(", $%s %s per 1,000 steps", NumberText(std::abs(change)),
                         change < 0 ? "less" : "more");
}

void PredictMore(const SpeedEvidence& evidence, const RoleSupply& role, SpeedVerdict& verdict) {
  const double ceiling = verdict.ceiling.value_or(std::numeric_limits<double>::infinity());
  for (int32_t added = 1; added <= kMostAdded; ++added) {
    const double rate =
        std::max(verdict.samples_per_second,
                 std::min(ceiling, verdict.samples_per_second + added * role.samples_per_second));
    const int32_t replicas = role.replicas + added;
    verdict.predictions.push_back(
        {.role = role.role,
         .replicas = replicas,
         .samples_per_second = rate,
         .dollars_per_1000_steps = DollarsPer1000Steps(evidence, role, replicas, rate)});
    if (rate >= ceiling) break;
  }
  // Enough to reach the ceiling, or twice as many as there are: nobody adds a hundred at once.
  const size_t at = std::min(verdict.predictions.size(), static_cast<size_t>(role.replicas));
  const ReportPrediction& chosen = verdict.predictions[at - 1];
  const double speedup = chosen.samples_per_second / verdict.samples_per_second;
  if (speedup < kWorthSaying) return;
  absl::StrAppendFormat(
      &verdict.sentence, "; %s: %.1f times the rate%s",
      Replicas(chosen.replicas - role.replicas, "more " + role.role), speedup,
      Money(DollarsPer1000Steps(evidence, role, role.replicas, verdict.samples_per_second),
            chosen.dollars_per_1000_steps));
}

void PredictFewer(const SpeedEvidence& evidence, const RoleSupply& role, SpeedVerdict& verdict) {
  double supply = 0;
  for (const RoleSupply& other : evidence.supplies) {
    supply += other.replicas * other.samples_per_second;
  }
  const double spare = supply - kSpareSupply * verdict.samples_per_second;
  const auto fewer =
      std::min(static_cast<int32_t>(spare / role.samples_per_second), role.replicas - 1);
  if (spare <= 0 || fewer < 1) return;
  const double rate = verdict.samples_per_second;
  const int32_t replicas = role.replicas - fewer;
  verdict.predictions.push_back(
      {.role = role.role,
       .replicas = replicas,
       .samples_per_second = rate,
       .dollars_per_1000_steps = DollarsPer1000Steps(evidence, role, replicas, rate)});
  absl::StrAppendFormat(&verdict.sentence, "; %s would keep up too%s",
                        Replicas(fewer, "fewer " + role.role),
                        Money(DollarsPer1000Steps(evidence, role, role.replicas, rate),
                              verdict.predictions.back().dollars_per_1000_steps));
}

}  // namespace

SpeedVerdict JudgeSpeed(const SpeedEvidence& evidence) {
  SpeedVerdict verdict;
  if (evidence.ranks.empty() || evidence.steps == 0) return verdict;
  const RankTime& worst = WorstRank(evidence);
  const bool waits = worst.data_wait_percent >= kInputBoundPercent;
  const auto samples = static_cast<double>(evidence.samples);
  const double seconds = StepSeconds(worst.phases);
  if (seconds > 0) verdict.samples_per_second = samples / seconds;
  verdict.ceiling = evidence.probed_ceiling;
  const double busy = BusySeconds(evidence.ranks);
  if (!verdict.ceiling && busy > 0) verdict.ceiling = samples / busy;

  verdict.sentence =
      absl::StrFormat("%s: %.0f %% of each step waits for data",
                      waits ? "input-bound" : "compute-bound", worst.data_wait_percent);
  const RoleSupply* role = BestRole(evidence);
  const Cause cause = MainCause(worst.waits);
  if (waits) verdict.sentence += cause.words;
  if (role == nullptr || verdict.samples_per_second <= 0) return verdict;
  if (!waits) {
    PredictFewer(evidence, *role, verdict);
  } else if (cause.workers_help) {
    PredictMore(evidence, *role, verdict);
  }
  return verdict;
}

}  // namespace hetero::insight
