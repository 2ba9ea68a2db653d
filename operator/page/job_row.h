#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/plan/observed.h"

// What the page of all jobs shows of one job: nothing of its manifest but names, and of its
// processes no output. Plain values; what is absent is not known or does not apply. Pure.
namespace hetero::jobs_page {

// How soon a person should look at the job, the most urgent first; the page sorts by it.
enum class Attention {
  kFailed,
  kStalled,
  kStarved,  // it trains, and its ranks wait for data for kStarvedPercent of their time or more
  kFound,    // it trains, and a rule that still holds has found something
  kWaiting,  // for a place, its pods or its restart
  kTraining,
  kSuspended,
  kSucceeded
};
inline constexpr double kStarvedPercent = 10;

struct JobRow {
  std::string name_space, name;
  int64_t created = 0;  // in seconds since 1970; 0: not known
  Attention attention = Attention::kWaiting;
  std::string state;        // as `kubectl hetero list` says it
  std::string queue;        // LocalQueue of Kueue
  std::string queue_state;  // while it waits or when it was admitted: the reason of its Queued
  std::string note;         // why it is where it is, one line; empty: there is nothing to say
  std::string registered;   // "2/3"
  int32_t attempt = 0, restarts = 0;
  std::string head_pod;  // while it trains

  int64_t step = 0, total_steps = 0;
  std::optional<double> samples_per_second, wait_percent;  // while it trains
  std::optional<int64_t> eta_seconds;
  std::optional<double> loss;
  std::optional<double> dollars, waiting_dollars;  // so far; of them, while ranks waited for data

  std::optional<api::JobFinding> finding;  // the first that still holds, else the first
  size_t findings = 0;
};

JobRow RowOf(const plan::ObservedJob& job);

}  // namespace hetero::jobs_page
