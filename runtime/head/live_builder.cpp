#include "runtime/head/live_builder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "runtime/head/live_sections.h"
#include "runtime/insight/resource_use.h"

namespace hetero::head {
namespace {

constexpr double kStale = 10;        // seconds after which a figure is no longer shown as of now
constexpr double kOfNow = 2;         // seconds that "now" is the mean of
constexpr int64_t kLateColumns = 3;  // that points may still come for

std::string StateOf(const MemberRecord& member) {
  if (member.finished) return "Finished";
  if (member.lost || member.process_gone) return "Lost";
  if (!member.connected()) return "Unreachable";
  if (!member.unfit.empty()) return "Unfit";
  return member.fits ? "Working" : "Joining";
}

// What it uses now, from its newest points.
void AddUseOfNow(const MemberUse& use, double now, live::Member& member) {
  const auto& points = use.recent();
  if (points.empty() || points.back().seconds < now - kStale) return;
  insight::UsePoint last = points.back();
  for (size_t i = points.size() - 1; i > 0 && last.span < kOfNow; --i) {
    insight::UsePoint earlier = points[i - 1];
    insight::Join(last, earlier);
    last = std::move(earlier);
  }
  member.busy_cores = last.busy_cores();
  if (last.cores > 0) member.cores = last.cores;
  member.gpu = last.gpu_utilization();
  if (last.rss_bytes > 0) member.rss_bytes = last.rss_bytes;
  if (last.span <= 0) return;
  member.queued_threads = last.run_queue_seconds / last.span;
  member.bytes_per_second = static_cast<double>(last.received_bytes + last.sent_bytes) / last.span;
}

// Of what a process may use, how much it did.
std::optional<double> ShareOf(const insight::UsePoint& point) {
  if (point.cores <= 0) return std::nullopt;
  return point.busy_cores() / point.cores;
}

struct ColumnSum {
  double weight = 0, busy = 0, gpu_weight = 0, gpu = 0;
};

// The means of the columns from `first` on.
std::map<int64_t, ColumnSum> SumColumns(const MemberUse& use, int64_t first) {
  std::map<int64_t, ColumnSum> sums;
  for (auto point = use.recent().rbegin(); point != use.recent().rend(); ++point) {
    const double middle = point->seconds - point->span / 2;
    const auto column = static_cast<int64_t>(std::floor(middle / LiveBuilder::kHeatSpan));
    if (column < first) break;
    ColumnSum& sum = sums[column];
    if (const std::optional<double> share = ShareOf(*point)) {
      sum.weight += point->span;
      sum.busy += *share * point->span;
    }
    if (const std::optional<double> gpu = point->gpu_utilization()) {
      sum.gpu_weight += point->span;
      sum.gpu += *gpu * point->span;
    }
  }
  return sums;
}

void SetHeat(size_t slot, double weight, double sum, std::string& column) {
  if (weight <= 0) return;
  if (column.size() <= slot) column.resize(slot + 1, ' ');
  column[slot] = live::HeatOf(sum / weight);
}

void KeepNewestColumns(int64_t first, std::map<int64_t, std::string>& columns) {
  columns.erase(columns.begin(), columns.lower_bound(first));
}

}  // namespace

live::Snapshot LiveBuilder::Build(const JobRecord& record, const v1::JobStatus& status,
                                  Moment now) {
  live::Snapshot snapshot;
  AddState(record, status, snapshot);
  snapshot.seconds = AgeAt(record, now.steady);
  AddProgress(record, status, snapshot);
  AddDollars(record, now, snapshot);
  AddFindings(status, snapshot);
  AddMembers(record, now, snapshot);
  AddHeat(record, now, snapshot);
  AddOperators(record, snapshot);
  AddCurves(record, snapshot);
  AddLives(record, snapshot);
  AddEvents(record, snapshot);
  AddLog(record, snapshot);
  return snapshot;
}

void LiveBuilder::AddMembers(const JobRecord& record, Moment now, live::Snapshot& snapshot) {
  for (const auto& [key, told] : record.members) {
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new) known->second.slot = static_cast<int32_t>(known_.size()) - 1;
    live::Member& member = snapshot.members.emplace_back();
    member.name = told.name;
    member.slot = known->second.slot;
    member.role = key.role;
    member.rank = told.trainer();
    member.node = told.hello.node();
    member.state = StateOf(told);
    member.restarts = told.restarts;
    member.samples_per_second = RateOf(told, now, known->second);
    if (told.trainer() && told.progress.step() > 0 && !record.input_only) {
      member.wait_percent = told.progress.data_wait_percent();
    }
    AddUseOfNow(told.use, snapshot.seconds, member);
  }
}

// Members tell once a second, not at the moment at which they are looked at.
std::optional<double> LiveBuilder::RateOf(const MemberRecord& member, Moment now, Known& known) {
  const int64_t samples = member.counters.samples() + member.earlier.samples();
  std::deque<Told>& told = known.told;
  if (!told.empty() && samples < told.back().samples) told.clear();
  told.push_back({now.steady, samples});
  while (told.size() > 2 && now.steady - told.front().at > kRateSpan) told.pop_front();
  const double seconds = base::ToSeconds(now.steady - told.front().at);
  if (seconds <= 0 || !member.registered()) return std::nullopt;
  return static_cast<double>(samples - told.front().samples) / seconds;
}

void LiveBuilder::AddHeat(const JobRecord& record, Moment now, live::Snapshot& snapshot) {
  const double age = AgeAt(record, now.steady);
  // The last column is still filled, and would look idle.
  const auto end = static_cast<int64_t>(std::floor(age / kHeatSpan));
  const int64_t oldest = std::max<int64_t>(end - kHeatColumns, 0);
  const int64_t known = heat_.columns.empty() ? oldest : heat_.columns.rbegin()->first;
  const int64_t first = std::max(oldest, known - kLateColumns);
  for (int64_t column = first; column < end; ++column) heat_.columns.try_emplace(column);
  for (const auto& [key, member] : record.members) {
    const auto slot = static_cast<size_t>(known_[key].slot);
    for (const auto& [column, sum] : SumColumns(member.use, first)) {
      if (column >= end) continue;
      SetHeat(slot, sum.weight, sum.busy, heat_.columns[column]);
      if (sum.gpu_weight > 0) SetHeat(slot, sum.gpu_weight, sum.gpu, heat_.gpus[column]);
    }
  }
  KeepNewestColumns(oldest, heat_.columns);
  KeepNewestColumns(oldest, heat_.gpus);
  heat_.span = kHeatSpan;
  snapshot.heat = heat_;
}

}  // namespace hetero::head
