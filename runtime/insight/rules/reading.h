#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/insight/evidence.h"

namespace hetero::insight {

inline constexpr double kMainCause = 0.5;  // of all waiting: what is more is why
inline constexpr double kSecondsPerMinute = 60;
inline constexpr double kSecondsPerHour = 3600;

// All phases, in seconds.
double AllSeconds(const PhaseSeconds& phases);

// What a rank does itself for its steps: neither waiting for data nor for other ranks.
double OwnSeconds(const PhaseSeconds& phases);

// Of all groups, or of one; none: 0.
double CpuSeconds(const MemberEvidence& member);
const ThreadGroupEvidence* FindGroup(const MemberEvidence& member, std::string_view name);

// CPU seconds over those that its cores have; absent: not measured.
std::optional<double> CpuShare(const MemberEvidence& member);

// Share of the time in which its threads would have run that they waited for a core instead.
double RunQueueShare(const MemberEvidence& member);

// The utilisation (or used share of the memory) of each GPU by index, moment by moment.
std::map<int32_t, std::vector<double>> GpuUtilization(const MemberEvidence& member);
std::map<int32_t, std::vector<double>> GpuMemoryShare(const MemberEvidence& member);

// What several rules work out of the evidence. It owns a clean copy (clean.h), so that no rule
// meets a number that cannot be. Immutable.
class Reading {
 public:
  explicit Reading(const Evidence& evidence);
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const Evidence& evidence() const { return evidence_; }
  const JobEvidence& job() const { return evidence_.job; }
  const std::vector<MemberEvidence>& members() const { return evidence_.members; }
  const std::vector<RankEvidence>& ranks() const { return evidence_.ranks; }
  double window_seconds() const { return evidence_.window_seconds; }
  bool complete() const { return evidence_.complete; }

  // The rank that waits for data the largest share of its time; null: no rank has trained.
  const RankEvidence* waiting_rank() const { return waiting_rank_; }
  double wait_seconds() const;
  double wait_percent() const;
  // Share of the time in which CPU workers have work, 0..1; absent: not known.
  std::optional<double> workers_busy() const;
  // Of its waiting, 0..1. What no cause is known of counts as waiting for batches in work, and so
  // does the transfer while CPU workers are busy all the time: what is made late arrives late.
  struct WaitShares {
    double no_worker = 0, workers = 0, transfer = 0, handover = 0;
  };
  WaitShares wait_shares() const;
  // It waits `percent` of its time or more, and at least half of that for batches that are queued
  // or in work.
  bool WaitsForWork(double percent) const;
  // Samples per second: consumed by all ranks together, and what they would take without waiting.
  // 0: not known.
  double consumed_rate() const;
  double demand_rate() const;

  std::vector<const MemberEvidence*> CpuWorkers() const;
  // In the order of ranks; those of which nothing is known are left out.
  std::vector<const MemberEvidence*> Trainers() const;
  const MemberEvidence* FindMember(std::string_view name) const;  // null: there is none
  const RankEvidence* FindRank(std::string_view member) const;    // null: it is none
  // The CPU role with most replicas; null: there is none.
  const RoleEvidence* CpuRole() const;
  const RoleEvidence* FindRole(std::string_view name) const;

  // Mean utilisation of all GPUs over the window, 0..1; absent: no counters of GPUs.
  std::optional<double> gpu_utilization() const { return gpu_utilization_; }
  // Of all replicas; absent: some role has no price.
  std::optional<double> dollars_per_hour() const;

 private:
  Evidence evidence_;
  const RankEvidence* waiting_rank_ = nullptr;
  std::optional<double> gpu_utilization_;
};

// "roles.cpu.replicas".
std::string RoleField(const std::string& role, const std::string& field);

}  // namespace hetero::insight
