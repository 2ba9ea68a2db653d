#include "runtime/head/report_builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/manifest.h"
#include "base/version.h"
#include "runtime/head/report_events.h"
#include "runtime/head/report_use.h"
#include "runtime/head/role_plan.h"
#include "runtime/head/verdict.h"
#include "runtime/job/stream_digest.h"

namespace hetero::head {
namespace {

constexpr double kSecondsPerHour = 3600;

// What really ran, which is what costs: from the first process of an attempt to its end.
double SecondsOfAttempts(const JobRecord& record, double age) {
  double seconds = record.past.attempts_left_out_seconds;
  for (const Attempt& attempt : record.attempts) {
    const bool last = &attempt == &record.attempts.back();
    seconds += (last ? age : attempt.end) - attempt.begin;
  }
  return seconds;
}

void AddAttempts(const JobRecord& record, double age, insight::Report& report) {
  for (const Attempt& attempt : record.attempts) {
    const bool last = &attempt == &record.attempts.back();
    const auto begin = record.created + std::chrono::duration_cast<base::WallTime::duration>(
                                            base::FromSeconds(attempt.begin));
    report.attempts.push_back({.attempt = attempt.number,
                               .time = Rfc3339(begin),
                               .seconds = (last ? age : attempt.end) - attempt.begin,
                               .cause = attempt.cause});
    report.attempt = std::max<int64_t>(report.attempt, attempt.number);
  }
}

// What an entry costs a CPU worker per sample, as the workers have measured it; empty: none has.
struct MeasuredCost {
  std::optional<double> seconds, python_seconds;
};

MeasuredCost MeasuredCostOf(const JobRecord& record, size_t entry) {
  double samples = 0, cpu = 0, python = 0;
  for (const auto& [key, member] : record.members) {
    for (const auto* costs : {&member.operator_costs, &member.earlier_operator_costs}) {
      if (entry >= costs->size()) continue;
      const v1::OperatorCost& cost = (*costs)[entry];
      samples += static_cast<double>(cost.samples());
      cpu += cost.cpu_seconds();
      python += cost.python_seconds();
    }
  }
  MeasuredCost measured;
  if (samples == 0 || cpu == 0) return measured;  // the workers do nothing for this entry
  measured.seconds = cpu / samples;
  if (python > 0) measured.python_seconds = python / samples;
  return measured;
}

void AddPlacement(const JobRecord& record, insight::Report& report) {
  const auto seconds = [](double s) { return s > 0 ? std::optional(s) : std::nullopt; };
  const auto bytes = [](int64_t b) { return b > 0 ? std::optional(b) : std::nullopt; };
  const std::vector<api::OperatorSpec>& pipeline = record.job.spec.pipeline;
  for (const v1::PlacementReport& entry : record.placement) {
    const size_t index = report.placement.size();
    const MeasuredCost measured = MeasuredCostOf(record, index);
    insight::ReportPlacement placement{
        .op = entry.op(),
        .where = entry.on_trainer() ? "Trainer" : "CPUWorker",
        .reason = entry.reason(),
        .worker_seconds = measured.seconds ? measured.seconds : seconds(entry.worker_seconds()),
        .python_seconds = measured.python_seconds,
        .trainer_seconds = seconds(entry.trainer_seconds()),
        .bytes_in = bytes(entry.bytes_in()),
        .bytes_out = bytes(entry.bytes_out())};
    if (index < pipeline.size() && pipeline[index].op == api::OperatorKind::kPython) {
      placement.function = absl::StrCat(pipeline[index].module, ".", pipeline[index].function);
    }
    report.placement.push_back(std::move(placement));
  }
}

void AddSpeed(const JobRecord& record, insight::Report& report) {
  insight::SpeedVerdict speed = JudgeSpeed(record);
  report.verdict = std::move(speed.sentence);
  report.ceiling_samples_per_second = speed.ceiling;
  if (speed.ceiling) {
    const bool probed = JobProgress(record).ceiling_samples_per_second() > 0;
    report.ceiling_source = probed ? "Probe" : "Steps";
  }
  report.predictions = std::move(speed.predictions);
  for (const auto& [key, member] : record.members) {
    if (!member.trainer() || member.time_line.points().empty()) continue;
    report.time_lines.push_back({member.rank, member.time_line.points()});
  }
  std::sort(report.time_lines.begin(), report.time_lines.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

// A script may leave its stream when it has seen enough. That is a success, and has to be seen.
void AddEarlyEnd(const JobRecord& record, const v1::Progress& progress, insight::Report& report) {
  if (record.state != v1::JobStatus::SUCCEEDED || progress.step() >= progress.total_steps()) return;
  report.message =
      absl::StrCat("ended after ", progress.step(), " of ", progress.total_steps(), " steps");
  if (progress.step() == 0) report.epochs = report.steps = report.samples_consumed = 0;
}

void AddProgress(const JobRecord& record, insight::Report& report) {
  const v1::Progress progress = JobProgress(record);
  report.duplicates_dropped = progress.duplicates_dropped();
  report.tickets_reissued = progress.tickets_reissued();
  report.bad_samples = progress.bad_samples();
  report.skipped_steps = progress.skipped_steps();
  for (const v1::BadSampleReport& sample : record.bad_samples.first()) {
    report.bad_sample_list.push_back({.sample_id = sample.sample_id(),
                                      .replacement_id = sample.replacement_id(),
                                      .reason = sample.reason()});
  }
  if (record.runs_scripts()) {
    report.script_restarts = record.past.script_restarts + record.script_restarts;
    for (const auto& [name, reported] : record.reported) report.reported[name] = reported.value;
    AddEarlyEnd(record, progress, report);
  }
  if (progress.step() == 0) return;
  report.epochs = progress.epoch();
  report.steps = progress.step();
  report.samples_consumed = progress.samples_consumed();
  if (!record.irreproducible.empty()) {
    report.digest_problem = record.irreproducible;
  } else if (progress.digest_unproven()) {
    report.digest_problem =
        "the script went on from a state that knows no digest of the steps before it";
  } else if (const MemberRecord* const rank = UnheardRank(record);
             rank != nullptr && !progress.digest_covers_job()) {
    report.digest_problem = absl::StrCat(rank->name, " ended before it had told of its last steps");
  } else {
    report.stream_digest = job::StreamDigest(progress.digest_high(), progress.digest_low()).ToHex();
  }
  if (progress.train_seconds() > 0) {
    report.train_seconds = progress.train_seconds();
    report.samples_per_second =
        static_cast<double>(progress.samples_consumed() - progress.samples_before()) /
        progress.train_seconds();
  }
  if (!progress.checkpoint_uri().empty()) report.checkpoint_uri = progress.checkpoint_uri();
  if (!progress.checkpoint_problem().empty()) {
    report.checkpoint_problem = progress.checkpoint_problem();
  }
  if (progress.first_step() > 0) report.resumed_from_step = progress.first_step();
  if (record.input_only) return;
  report.data_wait_percent = progress.data_wait_percent();
  report.phase_seconds = MakePhases(progress.phases());
  report.wait_seconds = MakeWaits(progress.waits());
  if (record.has_loss() && progress.step() > progress.first_step()) report.loss = progress.loss();
  AddSpeed(record, report);
}

void AddTraining(const JobRecord& record, insight::Report& report) {
  if (record.input_only) return;
  for (const v1::EvaluationResult& result : record.evaluations) {
    report.evaluations.push_back({.epoch = result.epoch(),
                                  .step = result.step(),
                                  .loss = result.loss(),
                                  .accuracy = result.accuracy(),
                                  .samples = result.samples()});
    report.accuracy = result.accuracy();
  }
  for (const v1::LossPoint& point : WholeLossCurve(record)) {
    report.loss_curve.push_back(
        {.step = point.step(), .loss = point.loss(), .seconds_per_step = point.seconds_per_step()});
  }
}

insight::ReportWorker MakeWorker(const std::string& name, const MemberKey& key,
                                 const std::string& node, const v1::Counters& now,
                                 const v1::Counters& earlier, int64_t restarts) {
  v1::Counters sum = now;
  AddCounters(earlier, sum);
  return {.name = name,
          .role = key.role,
          .index = key.index,
          .node = node,
          .batches = sum.batches(),
          .samples = sum.samples(),
          .bytes = sum.bytes(),
          .cpu_seconds = sum.cpu_seconds(),
          .peak_rss_bytes = sum.peak_rss_bytes(),
          .restarts = restarts,
          .storage_requests = sum.storage_requests(),
          .storage_bytes = sum.storage_bytes(),
          .data_wait_percent = {}};
}

void AddWait(const JobRecord& record, const RankTotals& totals, insight::ReportWorker& worker) {
  if (totals.train_seconds <= 0 || record.input_only) return;
  worker.data_wait_percent = totals.data_wait_percent;
}

// Who has not come back since an earlier head.
void AddPastWorkers(const JobRecord& record, std::map<std::string, double>& cpu_seconds,
                    insight::Report& report) {
  const RolePlan plan(record.job.spec);
  for (const auto& [key, member] : record.past.members) {
    std::string name;
    for (const RolePlan::Role& role : plan.roles()) {
      if (role.name == key.role) name = MemberName(role, key.index, key.local_rank);
    }
    if (name.empty()) continue;
    report.workers.push_back(
        MakeWorker(name, key, member.node(), member.now(), member.earlier(), member.restarts()));
    RankTotals totals = FromHistory(member.rank_now());
    AddTotals(FromHistory(member.rank_earlier()), totals);
    AddWait(record, totals, report.workers.back());
    cpu_seconds[key.role] += report.workers.back().cpu_seconds;
  }
  for (const v1::RoleHistory& role : record.past.roles) {
    cpu_seconds[role.role()] += role.sum().cpu_seconds();
  }
}

void AddWorkers(const JobRecord& record, insight::Report& report) {
  std::map<std::string, double> cpu_seconds;
  std::map<std::string, std::set<std::string>> versions;
  for (const auto& [key, member] : record.members) {
    report.workers.push_back(MakeWorker(member.name, key, member.hello.node(), member.counters,
                                        member.earlier, member.restarts));
    if (member.trainer()) {
      AddWait(record, WholeTotals(member), report.workers.back());
      report.workers.back().window_bytes = member.progress.window_bytes();
      report.workers.back().window_batches = member.progress.window_batches();
    }
    cpu_seconds[key.role] += report.workers.back().cpu_seconds;
    if (const v1::Hello& hello = member.hello; !hello.version().empty()) {
      versions[key.role].insert(base::FullVersion(hello.version(), hello.commit()));
    }
    report.attempt = std::max<int64_t>(report.attempt, member.hello.identity().attempt());
  }
  AddPastWorkers(record, cpu_seconds, report);
  std::stable_sort(report.workers.begin(), report.workers.end(), [](const auto& a, const auto& b) {
    return std::tie(a.role, a.index) < std::tie(b.role, b.index);
  });
  report.versions["hetero"] = base::FullVersion();
  for (const auto& [role, names] : versions) report.versions[role] = absl::StrJoin(names, ", ");
  if (!report.samples_consumed || *report.samples_consumed == 0) return;
  for (const auto& [role, seconds] : cpu_seconds) {
    report.cpu_seconds_per_sample[role] = seconds / static_cast<double>(*report.samples_consumed);
  }
}

bool StoragePriced(const api::Spec& spec) {
  return std::any_of(spec.storage.begin(), spec.storage.end(),
                     [](const api::StorageAccess& access) { return access.prices.has_value(); });
}

int64_t Rounded(double count) { return std::llround(std::min(count, 9e18)); }

// Of all processes that there are and were.
void AddStorage(const JobRecord& record, insight::Report& report) {
  v1::Counters sum;
  for (const auto& [key, member] : record.members) {
    AddCounters(member.counters, sum);
    AddCounters(member.earlier, sum);
  }
  for (const auto& [key, member] : record.past.members) {
    AddCounters(member.now(), sum);
    AddCounters(member.earlier(), sum);
  }
  for (const v1::RoleHistory& role : record.past.roles) AddCounters(role.sum(), sum);
  if (sum.storage_requests() == 0) return;
  report.storage = insight::ReportStorage{.requests = sum.storage_requests(),
                                          .retries = sum.storage_retries(),
                                          .bytes = sum.storage_bytes(),
                                          .dollars = {}};
  if (StoragePriced(record.job.spec)) report.storage->dollars = sum.storage_dollars();
  const auto samples = static_cast<double>(report.samples_consumed.value_or(0));
  for (const v1::OrderCost& cost : record.order_costs) {
    insight::ReportOrder order{.shuffle = cost.shuffle(),
                               .requests = Rounded(samples * cost.requests_per_sample()),
                               .bytes = {},
                               .dollars = {}};
    if (cost.bytes_per_sample() > 0) order.bytes = Rounded(samples * cost.bytes_per_sample());
    if (cost.has_dollars_per_sample()) order.dollars = samples * cost.dollars_per_sample();
    report.storage->orders.push_back(std::move(order));
  }
}

void AddCost(const JobRecord& record, double seconds, insight::Report& report) {
  double per_hour = 0;
  bool priced = false;
  for (const api::Role& role : record.job.spec.roles) {
    double price = 0;
    if (!absl::SimpleAtod(role.price_per_hour, &price)) continue;
    priced = true;
    per_hour += price * role.replicas;
  }
  if (!priced) return;
  report.cost_dollars = per_hour * seconds / kSecondsPerHour;
  if (report.samples_consumed && *report.samples_consumed > 0) {
    report.cost_per_million_samples =
        *report.cost_dollars * 1e6 / static_cast<double>(*report.samples_consumed);
  }
}

}  // namespace

std::vector<insight::ReportPlacement> BuildPlacement(const JobRecord& record) {
  insight::Report report;
  AddPlacement(record, report);
  return std::move(report.placement);
}

std::optional<double> CostDollars(const JobRecord& record, Moment now) {
  insight::Report report;
  AddCost(record, SecondsOfAttempts(record, AgeAt(record, now.steady)), report);
  return report.cost_dollars;
}

insight::Report BuildReport(const JobRecord& record, Moment now) {
  insight::Report report;
  report.job = record.job.metadata.name;
  report.state = StateName(record.state);
  report.message = record.stop_reason;
  if (record.first_failure) {
    const v1::Failure& failure = *record.first_failure;
    report.message =
        failure.member().empty() ? failure.message() : failure.member() + ": " + failure.message();
  }
  report.generations = std::max(record.generation, record.past.generation);
  report.seed = record.job.spec.training.seed;
  const double age = AgeAt(record, now.steady);
  report.wall_seconds = age;
  report.startup_seconds = record.startup_seconds;
  AddAttempts(record, age, report);
  AddProgress(record, report);
  AddTraining(record, report);
  AddPlacement(record, report);
  AddWorkers(record, report);
  AddCost(record, SecondsOfAttempts(record, age), report);
  AddStorage(record, report);
  AddUse(record, report);
  AddEvents(record, report);
  if (!record.input_only) report.steps_redone = record.steps_done.redone;
  report.config_json = api::ToJson(record.job);
  return report;
}

}  // namespace hetero::head
