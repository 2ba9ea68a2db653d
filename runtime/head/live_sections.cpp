#include "runtime/head/live_sections.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/operators.h"
#include "runtime/head/member_totals.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/report_events.h"
#include "runtime/head/verdict.h"

namespace hetero::head {
namespace {

constexpr double kSecondsOfHour = 3600;

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

std::string MessageForPeople(const JobRecord& record, const v1::JobStatus& status) {
  if (status.has_first_failure()) {
    const v1::Failure& failure = status.first_failure();
    return failure.member().empty() ? failure.message()
                                    : absl::StrCat(failure.member(), ": ", failure.message());
  }
  if (status.state() == v1::JobStatus::WAITING) return WhatIsMissing(status);
  return record.stop_reason;
}

constexpr std::array<LifeSpan, live::kSpans.size()> kLifeOrder = {
    LifeSpan::kQueued, LifeSpan::kWork,     LifeSpan::kTransfer,
    LifeSpan::kWindow, LifeSpan::kHandover, LifeSpan::kStep};

double SecondsSince(base::WallTime created, base::WallTime time) {
  return std::max(std::chrono::duration<double>(time - created).count(), 0.0);
}

}  // namespace

void AddState(const JobRecord& record, const v1::JobStatus& status, live::Snapshot& snapshot) {
  snapshot.job = record.job.metadata.name;
  snapshot.state = StateName(status.state());
  snapshot.message = MessageForPeople(record, status);
  snapshot.over =
      status.state() != v1::JobStatus::WAITING && status.state() != v1::JobStatus::RUNNING;
  snapshot.head_incarnation = status.head_incarnation();
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
  if (record.has_loss()) snapshot.last_loss = progress.loss();
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
  const size_t stride = curve.size() / kMostLosses + 1;
  for (size_t i = 0; i < curve.size(); ++i) {
    if (i % stride != 0 && i + 1 != curve.size()) continue;
    snapshot.losses.push_back({.step = curve[i].step(),
                               .loss = curve[i].loss(),
                               .seconds_per_step = curve[i].seconds_per_step()});
  }
  const auto& all = record.evaluations;
  for (size_t i = all.size() - std::min(all.size(), kMostLosses); i < all.size(); ++i) {
    snapshot.evaluations.push_back({.epoch = all[i].epoch(),
                                    .step = all[i].step(),
                                    .loss = all[i].loss(),
                                    .accuracy = all[i].accuracy(),
                                    .samples = all[i].samples()});
  }
  if (!all.empty()) snapshot.last_accuracy = all.back().accuracy();
}

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
  if (events.size() > kMostEvents) {
    events.erase(events.begin(), events.end() - kMostEvents);
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

}  // namespace hetero::head
