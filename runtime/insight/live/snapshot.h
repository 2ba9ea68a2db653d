#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/insight/report.h"

// All that the live page of a job shows, at one moment. Plain values; what is absent is not known
// or does not apply, and the page leaves it out. Seconds without another word are since the job was
// created.
namespace hetero::live {

// What is slow, and what to change.
struct Finding {
  std::string rule;     // "InputBound"
  std::string message;  // one sentence with figures
  std::string remedy;   // an instruction
  std::string field;    // of the manifest; empty: none
  std::string member;   // "cpu-0"; empty: the job
  double seconds = 0;   // of training, lost so far; 0: not known
  std::optional<double> dollars;
  bool active = true;  // it still holds
};

// One process of the job.
struct Member {
  std::string name;   // "cpu-0"
  int32_t slot = 0;   // its place in the columns of Heat; never changes
  std::string role;   // of the manifest
  bool rank = false;  // a trainer, not a CPU worker
  std::string node;
  std::string state;  // "Joining", "Working", "Unfit", "Unreachable", "Lost", "Finished"
  int64_t restarts = 0;
  // Over the last few seconds: what a CPU worker has made, what a rank has used.
  std::optional<double> samples_per_second;
  std::optional<double> busy_cores, cores;  // of the process; that it may use
  std::optional<double> gpu;                // mean utilization of its GPUs, 0..1
  std::optional<int64_t> rss_bytes;
  // Of a rank, so far, 0..100.
  std::optional<double> wait_percent;
  // Threads that were ready to run and did not, on average.
  std::optional<double> queued_threads;
  std::optional<double> bytes_per_second;  // to and from the network, of its machine
};

// One entry of the pipeline.
struct Operator {
  std::string name;   // "GaussianBlur"; of a Python operator module.function
  std::string where;  // "CPUWorker", "Trainer"; empty: not decided yet
  std::string reason;
  std::optional<double> core_seconds;    // per sample, where it runs
  std::optional<double> python_seconds;  // of them
  std::optional<double> cores;           // core_seconds times the job's rate
};

// The job over the second or more before `seconds`.
struct RatePoint {
  double seconds = 0;
  double samples_per_second = 0;
  double wait_percent = 0;  // of the rank that waits most, so far
};

// Where batches spend their time: seconds by kSpans.
inline constexpr std::array<const char*, 6> kSpans = {"queued", "work",     "transfer",
                                                      "window", "handover", "step"};
using Spans = std::array<double, kSpans.size()>;
struct BatchLives {
  std::optional<Spans> median;  // of all that were sampled, span by span
  std::optional<Spans> p95;
  int64_t batches = 0;  // that the two are of
  std::optional<Spans> latest;
  double latest_read = 0;  // seconds of its work in which it waited for storage
  int64_t latest_step = 0;
  std::string latest_worker;  // empty: the rank itself made it
};

// How busy each member was: a character for each slot, from '0' (idle) in 64 steps to 'o' (all its
// cores, or its GPUs, all the time); ' ' where it is not known.
struct Heat {
  double span = 2;                         // seconds of a column
  std::map<int64_t, std::string> columns;  // by seconds / span
  std::map<int64_t, std::string> gpus;     // empty: no member tells of GPUs
};
char HeatOf(std::optional<double> share);

struct Event {
  double seconds = 0;
  std::string kind;    // "Fault", "Disruption", "Attempt", "Generation"
  std::string member;  // empty: the job
  std::string text;
  std::optional<double> recovery_seconds;
};

struct LogLine {
  int64_t number = 0;  // counts all lines of the job that this head has got
  std::string member;
  int64_t unix_ms = 0;  // by the member's clock
  std::string text;
};

struct Snapshot {
  std::string job;
  std::string state;    // "Waiting", "Running", "Succeeded", "Failed", "Stopped"
  std::string message;  // what it waits for, or why it failed or stopped
  bool over = false;    // nothing will change any more
  int64_t head_incarnation = 0;
  double seconds = 0;
  int64_t step = 0, total_steps = 0, epoch = 0, total_epochs = 0, samples = 0;
  std::optional<double> eta_seconds;
  std::optional<double> samples_per_second;  // over the last few steps
  std::optional<double> ceiling;             // if its input cost nothing
  std::optional<double> wait_percent;        // so far
  std::string verdict;
  std::optional<insight::WaitSeconds> waits;
  std::optional<insight::PhaseSeconds> phases;
  std::optional<double> last_loss, last_accuracy;
  std::optional<double> dollars, dollars_per_hour, dollars_per_million_samples;
  std::optional<double> waiting_dollars;    // of `dollars`, for time in which the ranks waited
  std::vector<Finding> findings;            // causes first
  std::vector<Member> members;              // by name
  std::vector<Operator> operators;          // in the pipeline's order
  std::vector<RatePoint> rates;             // thinned
  std::vector<insight::ReportLoss> losses;  // thinned
  std::vector<insight::ReportEvaluation> evaluations;
  BatchLives lives;
  Heat heat;
  std::vector<Event> events;  // the newest, in order
  std::vector<LogLine> log;   // the newest of all members, in order
};

// What the page asks for of the one member that it shows in detail.
struct MemberDetail {
  std::string name;
  double seconds = 0;  // now
  struct Column {      // one span of time
    double seconds = 0;
    double span = 0;
    std::string cores;          // a byte for each core of the machine, 255: busy all the time
    std::vector<uint8_t> gpus;  // likewise, for each GPU
  };
  std::vector<Column> columns;
  std::vector<std::string> groups;    // of threads: "pipeline"
  std::vector<double> group_seconds;  // CPU time of them, all told
  std::vector<LogLine> log;           // its newest
};

}  // namespace hetero::live
