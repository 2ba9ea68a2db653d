#include "runtime/head/member_totals.h"

#include <algorithm>

namespace hetero::head {
namespace {

using insight::PhaseSeconds;
using insight::WaitSeconds;

// The order of these two lists is part of what is stored.
constexpr double PhaseSeconds::*kPhases[] = {
    &PhaseSeconds::wait,       &PhaseSeconds::host_to_device, &PhaseSeconds::forward,
    &PhaseSeconds::backward,   &PhaseSeconds::all_reduce,     &PhaseSeconds::optimizer,
    &PhaseSeconds::checkpoint, &PhaseSeconds::evaluation,     &PhaseSeconds::other};
constexpr double WaitSeconds::*kWaits[] = {&WaitSeconds::no_worker, &WaitSeconds::workers,
                                           &WaitSeconds::transfer, &WaitSeconds::handover};

int64_t Sum(int64_t a, int64_t b) {
  return std::min(std::min(a, kMostCounted) + std::min(b, kMostCounted), kMostCounted);
}

}  // namespace

void AddCounters(const v1::Counters& from, v1::Counters& to) {
  to.set_batches(Sum(to.batches(), from.batches()));
  to.set_samples(Sum(to.samples(), from.samples()));
  to.set_bytes(Sum(to.bytes(), from.bytes()));
  to.set_cpu_seconds(to.cpu_seconds() + from.cpu_seconds());
  to.set_busy_seconds(to.busy_seconds() + from.busy_seconds());
  to.set_storage_requests(Sum(to.storage_requests(), from.storage_requests()));
  to.set_storage_retries(Sum(to.storage_retries(), from.storage_retries()));
  to.set_storage_bytes(Sum(to.storage_bytes(), from.storage_bytes()));
  to.set_storage_dollars(to.storage_dollars() + from.storage_dollars());
  to.set_produce_seconds(to.produce_seconds() + from.produce_seconds());
  to.set_read_seconds(to.read_seconds() + from.read_seconds());
  to.set_storage_throttled(Sum(to.storage_throttled(), from.storage_throttled()));
  to.set_storage_seconds(to.storage_seconds() + from.storage_seconds());
  to.set_peak_rss_bytes(std::max(to.peak_rss_bytes(), from.peak_rss_bytes()));
}

void AddCosts(const std::vector<v1::OperatorCost>& from, std::vector<v1::OperatorCost>& to) {
  to.resize(std::max(to.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].set_samples(Sum(to[i].samples(), from[i].samples()));
    to[i].set_cpu_seconds(to[i].cpu_seconds() + from[i].cpu_seconds());
    to[i].set_python_seconds(to[i].python_seconds() + from[i].python_seconds());
  }
}

insight::PhaseSeconds MakePhases(const v1::PhaseSeconds& phases) {
  return {.wait = phases.wait(),
          .host_to_device = phases.host_to_device(),
          .forward = phases.forward(),
          .backward = phases.backward(),
          .all_reduce = phases.all_reduce(),
          .optimizer = phases.optimizer(),
          .checkpoint = phases.checkpoint(),
          .evaluation = phases.evaluation(),
          .other = phases.other()};
}

insight::WaitSeconds MakeWaits(const v1::WaitSeconds& waits) {
  return {.no_worker = waits.no_worker(),
          .workers = waits.workers(),
          .transfer = waits.transfer(),
          .handover = waits.handover()};
}

void AddPhases(const PhaseSeconds& from, PhaseSeconds& to) {
  for (const auto phase : kPhases) to.*phase += from.*phase;
}

RankTotals TotalsOf(const v1::Progress& progress) {
  return {.train_seconds = progress.train_seconds(),
          .phases = MakePhases(progress.phases()),
          .waits = MakeWaits(progress.waits()),
          .data_wait_percent = progress.data_wait_percent(),
          .steps = progress.step() - progress.first_step(),
          .samples = progress.samples_consumed() - progress.samples_before(),
          .tickets_reissued = progress.tickets_reissued(),
          .duplicates_dropped = progress.duplicates_dropped(),
          .skipped_steps = progress.skipped_steps()};
}

void AddTotals(const RankTotals& from, RankTotals& to) {
  const double seconds = from.train_seconds + to.train_seconds;
  if (to.train_seconds <= 0) {
    to.data_wait_percent = from.data_wait_percent;
  } else if (from.train_seconds > 0) {
    to.data_wait_percent =
        (from.data_wait_percent * from.train_seconds + to.data_wait_percent * to.train_seconds) /
        seconds;
  }
  to.train_seconds = seconds;
  AddPhases(from.phases, to.phases);
  for (const auto wait : kWaits) to.waits.*wait += from.waits.*wait;
  to.steps += from.steps;
  to.samples += from.samples;
  to.tickets_reissued += from.tickets_reissued;
  to.duplicates_dropped += from.duplicates_dropped;
  to.skipped_steps += from.skipped_steps;
}

v1::RankHistory ToHistory(const RankTotals& totals) {
  v1::RankHistory history;
  history.set_train_seconds(totals.train_seconds);
  for (const auto phase : kPhases) history.add_phases(static_cast<float>(totals.phases.*phase));
  for (const auto wait : kWaits) history.add_waits(static_cast<float>(totals.waits.*wait));
  history.set_data_wait_percent(static_cast<float>(totals.data_wait_percent));
  history.set_steps(totals.steps);
  history.set_samples(totals.samples);
  history.set_tickets_reissued(totals.tickets_reissued);
  history.set_duplicates_dropped(totals.duplicates_dropped);
  history.set_skipped_steps(totals.skipped_steps);
  return history;
}

RankTotals FromHistory(const v1::RankHistory& history) {
  RankTotals totals{.train_seconds = history.train_seconds(),
                    .data_wait_percent = history.data_wait_percent(),
                    .steps = history.steps(),
                    .samples = history.samples(),
                    .tickets_reissued = history.tickets_reissued(),
                    .duplicates_dropped = history.duplicates_dropped(),
                    .skipped_steps = history.skipped_steps()};
  int at = 0;
  for (const auto phase : kPhases) {
    if (at < history.phases_size()) totals.phases.*phase = history.phases(at);
    ++at;
  }
  at = 0;
  for (const auto wait : kWaits) {
    if (at < history.waits_size()) totals.waits.*wait = history.waits(at);
    ++at;
  }
  return totals;
}

}  // namespace hetero::head
