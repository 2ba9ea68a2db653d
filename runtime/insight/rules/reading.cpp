#include "runtime/insight/rules/reading.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/insight/rules/clean.h"
#include "runtime/insight/rules/statistics.h"

namespace hetero::insight {
namespace {

double WaitShareOf(const RankEvidence& rank) {
  const double all = AllSeconds(rank.phases);
  return all > 0 ? rank.phases.wait / all : 0;
}

constexpr double kAllTheTime = 0.9;  // but for evaluations and checkpoints

// Of steps alone.
double StepTime(const PhaseSeconds& p) { return AllSeconds(p) - p.checkpoint - p.evaluation; }

}  // namespace

double AllSeconds(const PhaseSeconds& p) {
  return p.wait + p.host_to_device + p.forward + p.backward + p.all_reduce + p.optimizer +
         p.checkpoint + p.evaluation + p.other;
}

double OwnSeconds(const PhaseSeconds& p) {
  return p.host_to_device + p.forward + p.backward + p.optimizer;
}

double CpuSeconds(const MemberEvidence& member) {
  double sum = 0;
  for (const ThreadGroupEvidence& group : member.groups) sum += group.cpu_seconds;
  return sum;
}

const ThreadGroupEvidence* FindGroup(const MemberEvidence& member, std::string_view name) {
  for (const ThreadGroupEvidence& group : member.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

std::optional<double> CpuShare(const MemberEvidence& member) {
  const double all = member.cores * member.seconds;
  if (all <= 0) return std::nullopt;
  return std::min(1.0, CpuSeconds(member) / all);
}

double RunQueueShare(const MemberEvidence& member) {
  const double wanted = CpuSeconds(member) + member.run_queue_seconds;
  return wanted > 0 ? member.run_queue_seconds / wanted : 0;
}

std::map<int32_t, std::vector<double>> GpuUtilization(const MemberEvidence& member) {
  std::map<int32_t, std::vector<double>> series;
  for (const Moment& moment : member.moments) {
    for (const GpuMoment& gpu : moment.gpus) series[gpu.index].push_back(gpu.utilization);
  }
  return series;
}

std::map<int32_t, std::vector<double>> GpuMemoryShare(const MemberEvidence& member) {
  std::map<int32_t, std::vector<double>> series;
  for (const Moment& moment : member.moments) {
    for (const GpuMoment& gpu : moment.gpus) {
      if (gpu.memory_total_bytes == 0) continue;
      series[gpu.index].push_back(static_cast<double>(gpu.memory_used_bytes) /
                                  static_cast<double>(gpu.memory_total_bytes));
    }
  }
  return series;
}

Reading::Reading(const Evidence& evidence) : evidence_(Clean(evidence)) {
  for (const RankEvidence& rank : evidence_.ranks) {
    if (AllSeconds(rank.phases) <= 0) continue;
    if (waiting_rank_ == nullptr || WaitShareOf(rank) > WaitShareOf(*waiting_rank_)) {
      waiting_rank_ = &rank;
    }
  }
  std::vector<double> of_gpus;
  for (const MemberEvidence& member : evidence_.members) {
    for (const auto& [index, series] : GpuUtilization(member)) of_gpus.push_back(Mean(series));
  }
  if (!of_gpus.empty()) gpu_utilization_ = Mean(of_gpus);
}

double Reading::wait_seconds() const {
  return waiting_rank_ == nullptr ? 0 : waiting_rank_->phases.wait;
}

double Reading::wait_percent() const {
  return waiting_rank_ == nullptr ? 0 : 100 * WaitShareOf(*waiting_rank_);
}

std::optional<double> Reading::workers_busy() const {
  std::vector<double> shares;
  for (const MemberEvidence* worker : CpuWorkers()) {
    if (worker->seconds <= 0 || worker->busy_seconds <= 0) continue;
    shares.push_back(std::min(1.0, worker->busy_seconds / worker->seconds));
  }
  if (shares.empty()) return std::nullopt;
  return Mean(shares);
}

Reading::WaitShares Reading::wait_shares() const {
  if (waiting_rank_ == nullptr) return {};
  const WaitSeconds& waits = waiting_rank_->waits;
  const double known = waits.no_worker + waits.workers + waits.transfer + waits.handover;
  const double all = std::max(known, waiting_rank_->phases.wait);
  if (all <= 0) return {};
  const double transfer = workers_busy().value_or(0) >= kAllTheTime ? 0 : waits.transfer;
  return {.no_worker = waits.no_worker / all,
          .workers = (waits.workers + waits.transfer - transfer + all - known) / all,
          .transfer = transfer / all,
          .handover = waits.handover / all};
}

bool Reading::WaitsForWork(double percent) const {
  return wait_seconds() > 0 && wait_percent() >= percent && wait_shares().workers >= kMainCause;
}

double Reading::consumed_rate() const {
  if (waiting_rank_ == nullptr) return 0;
  double samples = 0;
  for (const RankEvidence& rank : ranks()) {
    samples += static_cast<double>(rank.steps) * job().batch_size;
  }
  const double seconds = StepTime(waiting_rank_->phases);
  return seconds > 0 ? samples / seconds : 0;
}

double Reading::demand_rate() const {
  if (waiting_rank_ == nullptr) return 0;
  const double seconds = StepTime(waiting_rank_->phases);
  const double working = seconds - waiting_rank_->phases.wait;
  return working > 0 ? consumed_rate() * seconds / working : 0;
}

std::vector<const MemberEvidence*> Reading::CpuWorkers() const {
  std::vector<const MemberEvidence*> workers;
  for (const MemberEvidence& member : members()) {
    if (member.kind == MemberKind::kCpuWorker) workers.push_back(&member);
  }
  return workers;
}

std::vector<const MemberEvidence*> Reading::Trainers() const {
  std::vector<const MemberEvidence*> trainers;
  for (const RankEvidence& rank : ranks()) {
    const MemberEvidence* member = FindMember(rank.member);
    if (member != nullptr) trainers.push_back(member);
  }
  return trainers;
}

const MemberEvidence* Reading::FindMember(std::string_view name) const {
  for (const MemberEvidence& member : members()) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

const RankEvidence* Reading::FindRank(std::string_view member) const {
  for (const RankEvidence& rank : ranks()) {
    if (rank.member == member) return &rank;
  }
  return nullptr;
}

const RoleEvidence* Reading::CpuRole() const {
  const RoleEvidence* most = nullptr;
  for (const RoleEvidence& role : job().roles) {
    if (role.kind != MemberKind::kCpuWorker) continue;
    if (most == nullptr || role.replicas > most->replicas) most = &role;
  }
  return most;
}

const RoleEvidence* Reading::FindRole(std::string_view name) const {
  for (const RoleEvidence& role : job().roles) {
    if (role.name == name) return &role;
  }
  return nullptr;
}

std::optional<double> Reading::dollars_per_hour() const {
  if (job().roles.empty()) return std::nullopt;
  double sum = 0;
  for (const RoleEvidence& role : job().roles) {
    if (!role.price_per_hour) return std::nullopt;
    sum += *role.price_per_hour * role.replicas;
  }
  return sum;
}

std::string RoleField(const std::string& role, const std::string& field) {
  return absl::StrCat("roles.", role, ".", field);
}

}  // namespace hetero::insight
