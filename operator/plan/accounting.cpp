#include "operator/plan/accounting.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/money.h"
#include "api/reasons.h"
#include "operator/plan/ending.h"
#include "operator/plan/pod_lives.h"

namespace hetero::plan {
namespace {

using api::JobCost;
using std::chrono::seconds;

constexpr double kPercent = 100;

std::vector<std::string> NamesOf(const api::Spec& spec, std::optional<api::RoleType> only) {
  std::vector<std::string> names;
  for (const api::Role& role : spec.roles) {
    if (!only || role.type == *only) names.push_back(role.name);
  }
  return names;
}

bool Costs(const ObservedLives& lives) {
  return std::any_of(lives.there.begin(), lives.there.end(),
                     [](const PodLife& life) { return life.start && !life.end; });
}

// Samples that the optimizer has taken in; of a script, by its steps.
int64_t SamplesOf(const Pass& pass) {
  if (!pass.status.progress) return 0;
  int64_t ranks = 0;
  for (const api::Role& role : pass.spec.roles) {
    if (role.type != api::RoleType::kGpuWorker) continue;
    ranks += int64_t{role.replicas} * std::max(1, role.gpus_per_replica.value_or(1));
  }
  const api::Training& training = pass.spec.training;
  const absl::int128 samples = absl::int128(pass.status.progress->step) * ranks *
                               training.batch_size_per_worker *
                               training.gradient_accumulation_steps;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return samples < 0 ? 0 : samples > kMost ? kMost : static_cast<int64_t>(samples);
}

// Of those that the stored account has as running nobody else knows how they went.
bool AnyWent(const Pass& pass) {
  if (!pass.before.cost) return false;
  const std::vector<PodLife>& departed = pass.seen.lives->departed;
  return std::any_of(departed.begin(), departed.end(), [&pass](const PodLife& life) {
    return life.start && life.end && *life.end > pass.before.cost->as_of;
  });
}

bool SameFigures(JobCost a, const JobCost& b) {
  a.as_of = b.as_of;
  a.incarnation = b.incarnation;
  if (a.roles.size() != b.roles.size()) return false;
  for (size_t i = 0; i < a.roles.size(); ++i) a.roles[i].ledger = b.roles[i].ledger;
  return a == b;
}

bool HasFigures(const JobCost& cost) {
  return std::any_of(cost.roles.begin(), cost.roles.end(),
                     [](const api::RoleCost& role) { return role.pods > 0; });
}

bool WorthAWrite(Pass& pass) {
  const JobCost& cost = *pass.status.cost;
  if (!Costs(*pass.seen.lives)) {
    return pass.before.cost ? AnyWent(pass) || !SameFigures(cost, *pass.before.cost)
                            : HasFigures(cost);
  }
  return AnyWent(pass) || !pass.before.cost ||
         (pass.now >= pass.before.cost->as_of + kNewsDelay + kCostPeriod);
}

std::string Dollars(double dollars) { return absl::StrFormat("%.2f", dollars); }

}  // namespace

bool KeepsAccount(const ObservedJob& job, const children::Settings& settings) {
  const std::vector<api::Role>& roles = job.job.spec.roles;
  return settings.price_sheet || job.status.cost ||
         std::any_of(roles.begin(), roles.end(),
                     [](const api::Role& role) { return !role.price_per_hour.empty(); });
}

void KeepAccount(Pass& pass) {
  if (!pass.seen.lives) return;
  const base::WallTime as_of = std::chrono::floor<seconds>(pass.now - kNewsDelay);
  pass.status.cost = BringUpToDate(pass.before.cost,
                                   {.there = pass.seen.lives->there,
                                    .departed = pass.seen.lives->departed,
                                    .as_of = as_of,
                                    .now = pass.today,
                                    .training = pass.before.Is(api::ConditionType::kRunning),
                                    .continuous = pass.seen.lives->continuous},
                                   NamesOf(pass.spec, std::nullopt));
}

void DescribeCost(Pass& pass) {
  if (!pass.seen.lives || !pass.status.cost) return;
  std::optional<double> waiting_share;
  if (pass.status.progress) {
    waiting_share = pass.status.progress->data_wait_percent / kPercent;
  }
  Present(*pass.status.cost, NamesOf(pass.spec, api::RoleType::kGpuWorker), waiting_share,
          SamplesOf(pass));
  if (!WorthAWrite(pass)) {
    std::optional<JobCost> cost = std::exchange(pass.status.cost, pass.before.cost);
    if (pass.status != pass.before) pass.status.cost = std::move(cost);
  }
  if (Costs(*pass.seen.lives)) {
    if (pass.status.cost) pass.WakeAt(pass.status.cost->as_of + kNewsDelay + kCostPeriod);
  }
}

void CheckBudget(Pass& pass) {
  const std::optional<int64_t> budget = api::MicroDollars(pass.policy.max_dollars);
  if (!budget || !pass.status.cost) return;
  const JobCost& cost = *pass.status.cost;
  const absl::int128 limit = absl::int128(*budget) * (kAmountPerDollar / 1'000'000);
  const absl::int128 since =
      std::max<int64_t>(0, std::chrono::floor<seconds>(pass.now - cost.as_of).count());
  const int64_t rate = RateOf(cost);
  const absl::int128 spent = absl::int128(AmountOf(cost)) + since * rate;
  if (spent < limit) {
    if (rate == 0) return;
    const absl::int128 left = (limit - spent + rate - 1) / rate;
    constexpr int64_t kFar = std::numeric_limits<int32_t>::max();
    return pass.WakeAt(pass.today + seconds(left < kFar ? static_cast<int64_t>(left) : kFar));
  }
  const auto amount = static_cast<int64_t>(
      std::min<absl::int128>(spent, absl::int128(std::numeric_limits<int64_t>::max())));
  FailJob(pass, api::reason::kBudgetExceeded,
          absl::StrCat("runPolicy.maxDollars: ", Dollars(DollarsOf(amount)), " of ",
                       pass.policy.max_dollars, " dollars are spent, at ",
                       Dollars(static_cast<double>(rate) / 1e6),
                       " dollars an hour; the training is "
                       "saved where it has a checkpoint.uri"));
}

}  // namespace hetero::plan
