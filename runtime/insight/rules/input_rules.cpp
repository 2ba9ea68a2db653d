#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

std::string WaitText(const Reading& reading) {
  return absl::StrCat("rank ", reading.waiting_rank()->rank, " waits for data ",
                      ShareText(reading.wait_percent() / 100), " of its time");
}

// Enough to meet the demand, but at most twice as many as there are: nobody adds a hundred at once.
int32_t EnoughReplicas(const RoleEvidence& role, double supply, double demand) {
  const double factor = supply > 0 ? std::clamp(demand / supply, 1.0, 2.0) : 2.0;
  return std::max(role.replicas + 1, static_cast<int32_t>(std::ceil(role.replicas * factor)));
}

Finding MoreWorkers(const Reading& reading) {
  const double supply = reading.consumed_rate();
  const double demand = reading.demand_rate();
  const RoleEvidence* role = reading.CpuRole();
  Finding finding{.seconds = reading.wait_seconds()};
  if (role == nullptr || role->replicas == 0) {
    finding.message = absl::StrCat(WaitText(reading), ": the trainers' own cores make ",
                                   RateText(supply), " and nobody else does");
    finding.remedy = "add a role of type CPUWorker to roles, with replicas: 1";
    finding.field = "roles";
    if (role != nullptr) {
      finding.field = RoleField(role->name, "replicas");
      finding.remedy = absl::StrCat("set ", finding.field, " to 1");
    }
    return finding;
  }
  finding.message =
      absl::StrCat(WaitText(reading), ": ", Count(role->replicas, "replica"), " of ", role->name,
                   role->replicas == 1 ? " makes " : " make ", RateText(supply),
                   demand > 0 ? ", the trainers could take " + RateText(demand) : "");
  finding.field = RoleField(role->name, role->scaled_by_job ? "maxReplicas" : "replicas");
  finding.remedy = absl::StrCat(role->scaled_by_job ? "raise " : "set ", finding.field, " to ",
                                EnoughReplicas(*role, supply, demand));
  return finding;
}

Finding NoWorkerConnected(const Reading& reading) {
  const RoleEvidence* role = reading.CpuRole();
  Finding finding = {
      .message = absl::StrCat(WaitText(reading), ", ", ShareText(reading.wait_shares().no_worker),
                              " of it without a connected CPU worker"),
      .remedy =
          "find out in the workers' logs and events why they were not there, and add a role "
          "of type CPUWorker that is always there",
      .field = "roles",
      .seconds = reading.wait_seconds()};
  if (role != nullptr) {
    finding.field = RoleField(role->name, "capacity");
    finding.remedy = absl::StrCat("find out in the events why replicas of ", role->name,
                                  " were not there; if their nodes are taken away, set ",
                                  finding.field, " to OnDemand");
  }
  return finding;
}

Finding NoCoreToTakeOver(const Reading& reading) {
  const MemberEvidence* member = reading.FindMember(reading.waiting_rank()->member);
  const std::string role = member == nullptr ? "" : member->role;
  const std::string field = role.empty() ? "roles" : RoleField(role, "template");
  return {
      .message = absl::StrCat(WaitText(reading), ", ", ShareText(reading.wait_shares().handover),
                              " of it for batches that are there, until a core of the trainer "
                              "takes them over"),
      .remedy = absl::StrCat("raise resources.requests.cpu in ", field,
                             ", or place the last operators with placement: CPUWorker"),
      .field = field,
      .seconds = reading.wait_seconds()};
}

struct StorageSums {
  double work = 0, read = 0;  // seconds
  double requests = 0, retries = 0, throttled = 0, bytes = 0, seconds = 0;

  double read_share() const { return work > 0 ? std::min(1.0, read / work) : 0; }
};

StorageSums SumStorage(const Reading& reading) {
  StorageSums sums;
  for (const MemberEvidence& member : reading.members()) {
    sums.work += member.work_seconds;
    sums.read += member.read_seconds;
    const StorageEvidence& storage = member.storage;
    sums.requests += static_cast<double>(storage.requests);
    sums.retries += static_cast<double>(storage.retries);
    sums.throttled += static_cast<double>(storage.throttled);
    sums.bytes += static_cast<double>(storage.bytes);
    sums.seconds += storage.seconds;
  }
  if (sums.work > 0) return sums;
  for (const RankEvidence& rank : reading.ranks()) {
    for (const LifeEvidence& life : rank.lives) {
      sums.work += life.work_seconds;
      sums.read += life.read_seconds;
    }
  }
  return sums;
}

// What the store does, behind "which".
std::string StoreText(const StorageSums& sums, bool throttled) {
  if (throttled) {
    const bool told = sums.throttled > 0;
    return absl::StrCat(told ? "asks to slow down in " : "fails ",
                        ShareText((told ? sums.throttled : sums.retries) / sums.requests), " of ",
                        CountText(std::llround(sums.requests)), " requests");
  }
  if (sums.requests <= 0) return "";
  std::string text = "whose requests ";
  if (sums.seconds > 0) {
    absl::StrAppend(&text, "take ", DurationText(sums.seconds / sums.requests), " and ");
  }
  return absl::StrCat(text, "bring ", BytesText(sums.bytes / sums.requests), " each");
}

// The order that asks least of the store, with how many times fewer requests than the job's own.
std::pair<std::string, double> BetterOrder(const JobEvidence& job) {
  std::pair<std::string, double> best{"", 1};
  if (job.orders.empty()) return best;
  const auto own = static_cast<double>(job.orders.front().requests);
  for (const ReportOrder& order : job.orders) {
    if (order.requests <= 0) continue;
    const double fewer = own / static_cast<double>(order.requests);
    if (fewer > best.second) best = {order.shuffle, fewer};
  }
  return best;
}

void FewerRequests(const Reading& reading, bool throttled, Finding& finding) {
  constexpr double kWorthIt = 1.5;
  const auto [order, fewer] = BetterOrder(reading.job());
  if (fewer >= kWorthIt && absl::StartsWith(order, "Block")) {
    finding.field = "dataset.shuffle.mode";
    finding.remedy = absl::StrCat(
        "set dataset.shuffle.mode to Block", order.size() > 9 ? " with blockSize " : "",
        order.size() > 9 ? order.substr(9) : "", ": ", TimesText(fewer), " fewer requests");
    return;
  }
  const RoleEvidence* role = reading.CpuRole();
  if (!throttled && role != nullptr && role->replicas > 0) {
    finding.field = RoleField(role->name, role->scaled_by_job ? "maxReplicas" : "replicas");
    finding.remedy = absl::StrCat(
        "pack the samples into shards (hetero-runtime pack) and set "
        "dataset.uri to them, or set ",
        finding.field, " to ", 2 * role->replicas,
        " so that more requests are on their way at once");
    return;
  }
  finding.field = "dataset.uri";
  finding.remedy = "pack the samples into shards (hetero-runtime pack) and set dataset.uri to them";
}

}  // namespace

Findings JudgeInputBound(const Reading& reading, const Limits& limits) {
  if (reading.wait_seconds() <= 0 || reading.wait_percent() < limits("waitPercent")) return {};
  const Reading::WaitShares shares = reading.wait_shares();
  if (shares.no_worker > kMainCause) return {NoWorkerConnected(reading)};
  if (shares.handover > kMainCause) return {NoCoreToTakeOver(reading)};
  return {MoreWorkers(reading)};
}

Findings JudgeStorageBound(const Reading& reading, const Limits& limits) {
  if (!reading.WaitsForWork(limits("waitPercent"))) return {};
  const StorageSums sums = SumStorage(reading);
  if (sums.work <= 0 || 100 * sums.read_share() < limits("readPercent")) return {};
  const bool throttled =
      sums.requests > 0 &&
      (100 * sums.throttled >= std::max(limits("throttledPercent"), 1e-9) * sums.requests ||
       100 * sums.retries >= std::max(limits("retriedPercent"), 1e-9) * sums.requests);
  const std::string& uri = reading.job().storage_uri;
  const std::string store = StoreText(sums, throttled);
  Finding finding = {.message = absl::StrCat(
                         WaitText(reading), ": batches spend ", ShareText(sums.read_share()),
                         " of their making waiting for ", uri.empty() ? "the dataset's store" : uri,
                         store.empty() ? "" : ", ", throttled ? "which " : "", store),
                     .seconds = reading.wait_seconds() * sums.read_share()};
  FewerRequests(reading, throttled, finding);
  return {finding};
}

Findings JudgeNetworkBound(const Reading& reading, const Limits& limits) {
  if (reading.wait_seconds() <= 0 || reading.wait_percent() < limits("waitPercent")) return {};
  const double share = reading.wait_shares().transfer;
  if (share <= 0 || 100 * share < limits("transferPercent")) return {};
  const RankEvidence& rank = *reading.waiting_rank();
  const MemberEvidence* member = reading.FindMember(rank.member);
  std::string rate;
  if (member != nullptr && member->seconds > 0 && member->received_bytes > 0) {
    rate = absl::StrCat("; it receives ",
                        BytesText(static_cast<double>(member->received_bytes) / member->seconds),
                        " a second");
  }
  return {{.message = absl::StrCat(WaitText(reading), ", ", ShareText(share),
                                   " of it while batches are on their way", rate),
           .remedy = "set placement.zone to Same and ask for nodes with a faster network, or place "
                     "operators that make pictures smaller before all others",
           .field = "placement.zone",
           .seconds = reading.wait_seconds() * share}};
}

}  // namespace hetero::insight
