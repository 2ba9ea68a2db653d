#include "runtime/head/live_builder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/operators.h"
#include "runtime/head/member_totals.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/verdict.h"
#include "runtime/insight/resource_use.h"

namespace hetero::head {
namespace {

constexpr double kStale = 10;        // seconds after which a figure is no longer shown as of now
constexpr double kOfNow = 2;         // seconds that "now" is the mean of
constexpr int64_t kLateColumns = 3;  // that points may still come for
constexpr double kSecondsOfHour = 3600;

std::string NameOf(v1::JobStatus::State state) {
  switch (state) {
    case v1::JobStatus::WAITING:
      return "Waiting";
    case v1::JobStatus::RUNNING:
      return "Running";
    case v1::JobStatus::SUCCEEDED:
      return "Succeeded";
    case v1::JobStatus::FAILED:
      return "Failed";
    case v1::JobStatus::STOPPED:
      return "Stopped";
    default:
      return "Unknown";
  }
}

std::string WhatIsMissing(const v1::JobStatus& status) {
  std::vector<std::string> missing;
  for (const v1::RoleStatus& role : status.roles()) {
    if (role.registered() >= role.desired()) continue;
    std::string text = absl::StrCat(role.name(), " ", role.registered(), " of ", role.desired());
    if (role.missing_size() > 0) {
      absl::StrAppend(&text, " (missing ", absl::StrJoin(role.missing(), ", "), ")");
    }
    missing.push_back(std::move(text));
  }
  return missing.empty() ? "waiting until all see the same data"
                         : "waiting for " + absl::StrJoin(missing, "; ");
}

std::string MessageOf(const JobRecord& record, const v1::JobStatus& status) {
  if (status.has_first_failure()) {
    const v1::Failure& failure = status.first_failure();
    return failure.member().empty() ? failure.message()
                                    : absl::StrCat(failure.member(), ": ", failure.message());
  }
  if (status.state() == v1::JobStatus::WAITING) return WhatIsMissing(status);
  return record.stop_reason;
}

std::string StateOf(const MemberRecord& member) {
  if (member.finished) return "Finished";
  if (member.lost || member.process_gone) return "Lost";
  if (!member.connected()) return "Unreachable";
  if (!member.unfit.empty()) return "Unfit";
  return member.fits ? "Working" : "Joining";
}

void AddProgress(const JobRecord& record, const v1::JobStatus& status, live::Snapshot& snapshot) {
  const v1::Progress& progress = status.progress();
  snapshot.step = progress.step();
  snapshot.total_steps = progress.total_steps();
  snapshot.epoch = progress.epoch();
  snapshot.total_epochs = progress.total_epochs();
  snapshot.samples = progress.samples_consumed();
  if (progress.step() == 0) return;
  if (status.eta_seconds() > 0) snapshot.eta_seconds = status.eta_seconds();
  if (!record.ended) snapshot.samples_per_second = progress.samples_per_second();
  if (record.input_only) return;
  snapshot.wait_percent = progress.data_wait_percent();
  snapshot.waits = MakeWaits(progress.waits());
  snapshot.phases = MakePhases(progress.phases());
  const std::vector<v1::LossPoint>& curve = record.loss_curve.points();
  if (!record.runs_scripts() || !curve.empty()) snapshot.last_loss = progress.loss();
  const insight::SpeedVerdict speed = JudgeSpeed(record);
  snapshot.ceiling = speed.ceiling;
  snapshot.verdict = speed.sentence;
}

void AddDollars(const JobRecord& record, Moment now, live::Snapshot& snapshot) {
  snapshot.dollars = CostDollars(record, now);
  if (!snapshot.dollars) return;
  double per_hour = 0;
  for (const api::Role& role : record.job.spec.roles) {
    per_hour += PricePerHour(role).value_or(0) * role.replicas;
  }
  snapshot.dollars_per_hour = per_hour;
  if (snapshot.samples > 0) {
    snapshot.dollars_per_million_samples =
        *snapshot.dollars * 1e6 / static_cast<double>(snapshot.samples);
  }
  if (snapshot.waits) {
    const insight::WaitSeconds& waits = *snapshot.waits;
    const double seconds = waits.no_worker + waits.workers + waits.transfer + waits.handover;
    snapshot.waiting_dollars = std::min(per_hour * seconds / kSecondsOfHour, *snapshot.dollars);
  }
}

void AddFindings(const v1::JobStatus& status, live::Snapshot& snapshot) {
  for (const v1::Finding& finding : status.findings()) {
    snapshot.findings.push_back(
        {.rule = finding.rule(),
         .message = finding.message(),
         .remedy = finding.remedy(),
         .field = finding.field(),
         .member = finding.member(),
         .seconds = finding.seconds(),
         .dollars = finding.has_dollars() ? std::optional(finding.dollars()) : std::nullopt,
         .active = finding.active()});
  }
}

void AddOperators(const JobRecord& record, live::Snapshot& snapshot) {
  for (insight::ReportPlacement& placed : BuildPlacement(record)) {
    live::Operator op{
        .name = placed.function.empty() ? placed.op : placed.function,
        .where = placed.where,
        .reason = placed.reason,
        .core_seconds = placed.where == "Trainer" ? placed.trainer_seconds : placed.worker_seconds,
        .python_seconds = placed.python_seconds};
    if (op.core_seconds && snapshot.samples_per_second) {
      op.cores = *op.core_seconds * *snapshot.samples_per_second;
    }
    snapshot.operators.push_back(std::move(op));
  }
  if (!snapshot.operators.empty()) return;
  for (const api::OperatorSpec& entry : record.job.spec.pipeline) {
    live::Operator& op = snapshot.operators.emplace_back();
    op.name = api::RowOf(entry.op).name;
  }
}

void AddCurves(const JobRecord& record, live::Snapshot& snapshot) {
  for (const RateSample& sample : record.rate_curve.points()) {
    snapshot.rates.push_back({sample.seconds, sample.samples_per_second, sample.wait_percent});
  }
  if (record.input_only) return;
  const std::vector<v1::LossPoint> curve = WholeLossCurve(record);
  const size_t stride = curve.size() / LiveBuilder::kMostLosses + 1;
  for (size_t i = 0; i < curve.size(); ++i) {
    if (i % stride != 0 && i + 1 != curve.size()) continue;
    snapshot.losses.push_back({.step = curve[i].step(),
                               .loss = curve[i].loss(),
                               .seconds_per_step = curve[i].seconds_per_step()});
  }
  const auto& all = record.evaluations;
  for (size_t i = all.size() - std::min(all.size(), LiveBuilder::kMostLosses); i < all.size();
       ++i) {
    snapshot.evaluations.push_back({.epoch = all[i].epoch(),
                                    .step = all[i].step(),
                                    .loss = all[i].loss(),
                                    .accuracy = all[i].accuracy(),
                                    .samples = all[i].samples()});
  }
  if (!all.empty()) snapshot.last_accuracy = all.back().accuracy();
}

constexpr std::array<LifeSpan, live::kSpans.size()> kLifeOrder = {
    LifeSpan::kQueued, LifeSpan::kWork,     LifeSpan::kTransfer,
    LifeSpan::kWindow, LifeSpan::kHandover, LifeSpan::kStep};

void AddLives(const JobRecord& record, live::Snapshot& snapshot) {
  live::BatchLives& lives = snapshot.lives;
  std::array<insight::Histogram, kLifeOrder.size()> all;
  const v1::BatchLife* latest = nullptr;
  for (const auto& [key, member] : record.members) {
    if (!member.trainer()) continue;
    for (size_t i = 0; i < all.size(); ++i) all[i].Add(member.use.LifeSeconds(kLifeOrder[i]));
    if (member.use.lives().empty()) continue;
    const v1::BatchLife& newest = member.use.lives().back();
    if (latest == nullptr || newest.asked_unix_ns() > latest->asked_unix_ns()) latest = &newest;
  }
  lives.batches = all[1].count();
  if (lives.batches > 0) {
    lives.median.emplace();
    lives.p95.emplace();
    for (size_t i = 0; i < all.size(); ++i) {
      (*lives.median)[i] = all[i].Quantile(0.5);
      (*lives.p95)[i] = all[i].Quantile(0.95);
    }
  }
  if (latest == nullptr) return;
  lives.latest.emplace();
  for (size_t i = 0; i < all.size(); ++i) (*lives.latest)[i] = SecondsOf(*latest, kLifeOrder[i]);
  lives.latest_read = latest->read_seconds();
  lives.latest_step = latest->step();
  lives.latest_worker = latest->worker();
}

double SecondsSince(base::WallTime created, base::WallTime time) {
  return std::max(std::chrono::duration<double>(time - created).count(), 0.0);
}

void AddEvents(const JobRecord& record, live::Snapshot& snapshot) {
  std::vector<live::Event>& events = snapshot.events;
  for (const Attempt& attempt : record.attempts) {
    if (attempt.cause.empty()) continue;
    events.push_back({.seconds = attempt.begin,
                      .kind = "Attempt",
                      .member = "",
                      .text = absl::StrCat("attempt ", attempt.number, ": ", attempt.cause)});
  }
  for (const Fault& fault : record.faults) {
    events.push_back({.seconds = SecondsSince(record.created, fault.time),
                      .kind = "Fault",
                      .member = fault.member,
                      .text = fault.what,
                      .recovery_seconds = fault.recovery_seconds});
  }
  for (const Disruption& disruption : record.disruptions) {
    events.push_back({.seconds = SecondsSince(record.created, disruption.time),
                      .kind = "Disruption",
                      .member = disruption.member,
                      .text = disruption.sign,
                      .recovery_seconds = disruption.checkpoint_seconds});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (events.size() > LiveBuilder::kMostEvents) {
    events.erase(events.begin(), events.end() - LiveBuilder::kMostEvents);
  }
}

void AddLog(const JobRecord& record, live::Snapshot& snapshot) {
  for (const LogTails::Line& line : record.log_tails.newest()) {
    snapshot.log.push_back({.number = line.number,
                            .member = line.member,
                            .unix_ms = line.unix_ns / 1'000'000,
                            .text = line.text});
  }
}

// What it uses now, from its newest points.
void AddUse(const MemberUse& use, double now, live::Member& member) {
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

void KeepNewest(int64_t first, std::map<int64_t, std::string>& columns) {
  columns.erase(columns.begin(), columns.lower_bound(first));
}

}  // namespace

live::Snapshot LiveBuilder::Build(const JobRecord& record, const v1::JobStatus& status,
                                  Moment now) {
  live::Snapshot snapshot;
  snapshot.job = record.job.metadata.name;
  snapshot.state = NameOf(status.state());
  snapshot.message = MessageOf(record, status);
  snapshot.over =
      status.state() != v1::JobStatus::WAITING && status.state() != v1::JobStatus::RUNNING;
  snapshot.head_incarnation = status.head_incarnation();
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
    AddUse(told.use, snapshot.seconds, member);
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
  KeepNewest(oldest, heat_.columns);
  KeepNewest(oldest, heat_.gpus);
  heat_.span = kHeatSpan;
  snapshot.heat = heat_;
}

}  // namespace hetero::head
