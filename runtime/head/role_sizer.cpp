#include "runtime/head/role_sizer.h"

#include <algorithm>
#include <limits>

#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

constexpr double kLeastWorkSeconds = 0.1;  // of a worker's work
constexpr base::Duration kWindow = std::chrono::seconds(2);

}  // namespace

RoleSizer::Steps RoleSizer::StepsOf(const v1::Progress& progress) {
  const v1::PhaseSeconds& p = progress.phases();
  return {.steps = progress.step(),
          .seconds = progress.train_seconds(),
          .work = p.host_to_device() + p.forward() + p.backward() + p.optimizer(),
          .all_reduce = p.all_reduce(),
          .wait = p.wait()};
}

std::optional<double> RoleSizer::TakeRate(const MemberKey& key, const MemberRecord& member) {
  const Work now{.busy_seconds = member.counters.busy_seconds(),
                 .samples = member.counters.samples()};
  Work& before = work_[key];
  if (now.busy_seconds < before.busy_seconds || now.samples < before.samples) before = {};
  if (!member.registered() || now.busy_seconds - before.busy_seconds < kLeastWorkSeconds) {
    return std::nullopt;
  }
  const double rate =
      static_cast<double>(now.samples - before.samples) / (now.busy_seconds - before.busy_seconds);
  before = now;
  return rate;
}

// Per step, because ranks tell of different steps at one moment.
void RoleSizer::TakeDemand(const JobRecord& record, base::Instant now) {
  demand_ = 0;
  const int64_t samples = JobProgress(record).samples_consumed();
  if (window_began_ && now - *window_began_ < kWindow) return;
  double work = 0;
  double reduce = std::numeric_limits<double>::infinity();
  double waiting = 0;
  double samples_per_step = 0;
  bool whole = window_began_.has_value();
  for (const auto& [key, member] : record.members) {
    if (!member.trainer()) continue;
    const Steps latest = StepsOf(member.progress);
    const Steps& before = steps_[key];
    const auto steps = static_cast<double>(latest.steps - before.steps);
    if (steps < 1 || latest.seconds <= before.seconds) {
      whole = false;
      if (window_began_ && latest.steps >= before.steps) return;  // slow steps: a longer window
      continue;
    }
    work = std::max(work, (latest.work - before.work) / steps);
    reduce = std::min(reduce, (latest.all_reduce - before.all_reduce) / steps);
    waiting = std::max(waiting, (latest.wait - before.wait) / (latest.seconds - before.seconds));
    if (member.rank == 0) samples_per_step = static_cast<double>(samples - samples_) / steps;
  }
  if (whole && work + reduce > 0 && samples_per_step > 0) {
    demand_ = samples_per_step / (work + reduce);
    data_wait_percent_ = 100 * waiting;
  }
  for (const auto& [key, member] : record.members) {
    if (member.trainer()) steps_[key] = StepsOf(member.progress);
  }
  samples_ = samples;
  window_began_ = now;
}

std::vector<v1::RoleSizing> RoleSizer::Look(const JobRecord& record, base::Instant now) {
  if (record.input_only || record.generation == 0) return {};
  TakeDemand(record, now);
  insight::SizingInput input{.demand = demand_, .data_wait_percent = data_wait_percent_};
  for (const api::Role& role : record.job.spec.roles) {
    if (role.type != api::RoleType::kCpuWorker) continue;
    insight::SizingRole measured{.name = role.name,
                                 .replicas = role.replicas,
                                 .min_replicas = role.min_replicas.value_or(role.replicas),
                                 .max_replicas = role.max_replicas.value_or(role.replicas),
                                 .price_per_hour = PricePerHour(role)};
    for (const auto& [key, member] : record.members) {
      if (key.role != role.name) continue;
      measured.rates.resize(std::max(measured.rates.size(), static_cast<size_t>(key.index) + 1));
      measured.rates[static_cast<size_t>(key.index)] = TakeRate(key, member);
    }
    input.roles.push_back(std::move(measured));
  }
  std::vector<v1::RoleSizing> sizing;
  for (const insight::SizingTarget& target : sizing_.Step(input, now)) {
    v1::RoleSizing& entry = sizing.emplace_back();
    entry.set_role(target.role);
    entry.set_needed_replicas(target.replicas);
    entry.set_reason(target.reason);
  }
  return sizing;
}

}  // namespace hetero::head
