#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "hetero/v1/finding.pb.h"
#include "hetero/v1/history.pb.h"
#include "hetero/v1/membership.pb.h"
#include "hetero/v1/status.pb.h"
#include "runtime/head/bad_sample_log.h"
#include "runtime/head/log_tails.h"
#include "runtime/head/loss_curve.h"
#include "runtime/head/member_totals.h"
#include "runtime/head/member_use.h"
#include "runtime/head/rate_curve.h"
#include "runtime/insight/time_line.h"

// What the head knows about a job, as plain data: State (state.h) writes it; the status, the
// verdict and the report are functions of it.
namespace hetero::head {

using StreamId = int64_t;

// Both times of one moment: `steady` measures, `wall` is for people and files.
struct Moment {
  base::Instant steady;
  base::WallTime wall;
};

struct MemberKey {
  std::string role;
  int32_t index = 0;
  int32_t local_rank = 0;
  // clang-tidy 14 mistakes the defaulted body's 0 for a null pointer.
  auto operator<=>(const MemberKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct MemberRecord {
  std::string name;               // "cpu-0", "gpu-1.3" when a replica has several ranks
  int32_t rank = -1;              // -1: CPU worker
  v1::Hello hello;                // of the current process
  int64_t first_incarnation = 0;  // of the first process of it that this head met
  std::optional<StreamId> stream;
  base::Instant last_seen;        // last message
  base::Instant disconnected_at;  // meaningful without a stream
  bool process_gone = false;      // known to have ended, not only out of reach
  bool lost = false;              // silent or out of reach for too long; back with its next message
  base::Instant lost_at;          // meaningful when lost
  base::Instant joined_at;        // when the current process did
  int64_t broken_generation = 0;  // trainers: whose process group broke, as last told
  std::optional<v1::Ready> ready;  // of the current process, once its dataset is open
  bool fits = false;               // what it sees of the data is what all others see
  std::string unfit;               // a CPU worker's: what it sees that others do not
  std::optional<v1::Finished> finished;
  v1::Counters counters;  // of the current process
  v1::Counters earlier;   // of the processes it replaced
  // By entry of spec.pipeline; empty: not told.
  std::vector<v1::OperatorCost> operator_costs;          // of the current process
  std::vector<v1::OperatorCost> earlier_operator_costs;  // of the processes it replaced
  v1::Progress progress;
  RankTotals earlier_rank;      // of the processes it replaced
  insight::TimeLine time_line;  // of a rank, its earlier processes included
  int64_t restarts = 0;
  std::optional<size_t> open_fault;  // index into JobRecord::faults, until it is back
  MemberUse use;                     // of all processes that this head met

  bool trainer() const { return rank >= 0; }
  bool connected() const { return stream.has_value(); }
  bool registered() const { return !lost && !process_gone && !finished; }
  bool takes_part() const { return registered() && fits; }
};

// One process of one member, in trouble once: told twice it is entered once (fault_log.h).
struct Fault {
  base::WallTime time;
  base::Instant since;  // to measure the recovery
  std::string what;
  std::optional<double> recovery_seconds;
  std::string member;       // empty: the job
  int64_t incarnation = 0;  // of the process; 0: not known
  bool over = false;        // that process is gone for good

  bool open() const { return !recovery_seconds && !over; }
};

// That the machine of a process was about to go, and when the training was saved after that.
struct Disruption {
  base::WallTime time;
  base::Instant since;
  std::string member;
  int64_t incarnation = 0;  // of the process; 0: not known
  std::string sign;         // "node a: taint karpenter.sh/disrupted"
  bool told = false;        // to this head, which then has the training saved
  // The newest that ranks had told by then, and that of the newest checkpoint; none: nobody trains.
  std::optional<int64_t> step;
  int64_t saved = 0;
  std::optional<double> checkpoint_seconds;
  int64_t checkpoint_step = 0;  // steps done in it; meaningful with its seconds
};

// How far ranks have got, as they told, and how many steps were done more than once because a
// process of rank 0 began before that, or its script did.
struct StepsDone {
  int64_t furthest = 0;
  int64_t redone = 0;
  int64_t incarnation = 0;  // of the latest process of rank 0
  int64_t before = 0;       // `furthest` when that joined: nobody can step without it
  bool counted = false;     // what it did again
};

// Times are seconds since the job was created.
struct Attempt {
  int32_t number = 1;
  double begin = 0;
  double end = 0;     // of the last one: not known yet
  std::string cause;  // of its beginning; empty: the first, or not known
};

// What is known from the heads before this one, and has not been told again since.
struct Past {
  std::map<MemberKey, v1::MemberHistory> members;  // that have not joined this head
  std::vector<v1::RoleHistory> roles;  // sums of members that are not known by name; none living
  std::vector<v1::LossPoint> losses;   // thinned
  int64_t generation = 0;              // newest that was formed
  int64_t faults_left_out = 0;
  double attempts_left_out_seconds = 0;
  double ceiling_samples_per_second = 0;
  double elapsed_seconds = 0;        // when it was written, since the job was created
  int32_t script_restarts = 0;       // of attempts before this one
  std::optional<size_t> head_fault;  // index of the loss of the head before, until all is well
  bool same_attempt = false;         // the head before was of this one
};

// The latest number that a script told under one name.
struct Reported {
  double value = 0;
  int32_t rank = 0;  // whose script
};

inline constexpr size_t kMostFindings = 20;  // kept

// What a rule has found.
struct HeldFinding {
  v1::Finding finding;
  size_t place = 0;          // among those that were found with it
  base::Instant found_at{};  // the last time
};

struct JobRecord {
  api::HeteroTrainingJob job;
  bool input_only = false;
  base::WallTime created;
  base::Duration age{};  // of the job when this head began, at `began`
  base::Instant began{};
  // Who lived when this head began has had the time to come back to it.
  bool all_had_time = false;
  std::optional<base::WallTime> ended;
  base::Instant ended_at{};       // meaningful when ended
  std::vector<Attempt> attempts;  // in order, this one last
  std::optional<double> startup_seconds;
  std::string checkpoint_uri;  // of the newest that any rank 0 told of
  Past past;
  v1::JobStatus::State state = v1::JobStatus::WAITING;
  int64_t generation = 0;
  // That some rank may have got to, in whichever attempt: as far again beyond the last that was
  // told as that was beyond the one before.
  int64_t reached_step = 0;
  std::vector<MemberKey> ranks;  // every rank of the manifest, joined or not
  std::map<MemberKey, MemberRecord> members;
  std::vector<v1::EvaluationResult> evaluations;
  LossCurve loss_curve;
  BadSampleLog bad_samples;
  std::string irreproducible;  // the first that a CPU worker has told of
  std::vector<v1::PlacementReport> placement;
  std::vector<v1::OrderCost> order_costs;
  std::vector<v1::RoleSizing> sizing;
  std::vector<Fault> faults;
  std::map<MemberKey, v1::Notice> notices;  // that are true now; of a replica, its first rank
  uint64_t notices_fingerprint = 0;         // as they were told
  std::vector<Disruption> disruptions;      // the last few, in order
  StepsDone steps_done;
  int64_t checkpoints = 0;            // that rank 0 told of, to this head
  std::vector<HeldFinding> findings;  // the costliest of those that hold first
  // Why the head would not have a process of that name, which has not joined since.
  std::map<std::string, std::string> refusals;
  std::optional<v1::Failure> first_failure;
  std::string stop_reason;
  // Of a job whose ranks run scripts.
  int32_t script_restarts = 0;                            // in this attempt
  std::vector<v1::ScriptFailureHistory> script_failures;  // the last few, of earlier heads too
  std::optional<v1::Failure> script_failure;  // the first that this head saw; scripts began again
  std::map<std::string, Reported> reported;   // by name
  // For the live page, of this head's time alone.
  LogTails log_tails;
  RateCurve rate_curve;

  bool runs_scripts() const { return job.spec.training.script.has_value() && !input_only; }
  // Of this attempt and process of the head. Only a script may train without telling the loss, or
  // tell none that is a number.
  bool has_loss() const { return !runs_scripts() || loss_curve.any_finite(); }
};

// Nanoseconds since 1970.
int64_t UnixNs(base::WallTime time);
// Seconds since the job was created, by this head's steady clock from where it began: never less
// than before, nor than when the attempt began. At most until the end.
double AgeAt(const JobRecord& record, base::Instant now);
// The loss over the steps, of earlier heads too; thinned.
std::vector<v1::LossPoint> WholeLossCurve(const JobRecord& record);
// Of a rank, over all processes that have held its place.
RankTotals WholeTotals(const MemberRecord& member);

// A rank that ended without its last word, behind others: steps that it did are not told. Null:
// there is none.
const MemberRecord* UnheardRank(const JobRecord& record);

// Trainers that have trained for (almost) all of the time, not only since they were replaced.
std::vector<const MemberRecord*> TimedRanks(const JobRecord& record);
// The timed rank that waited most for data, for that one holds up the others; nullptr before any
// has trained.
const MemberRecord* SlowestRank(const JobRecord& record);
// Of rank 0, or of another that has trained when its process is gone unheard; sums over the ranks
// where the field is a sum; times, phases and waits of the slowest rank, and with them the samples
// that came before those times.
v1::Progress JobProgress(const JobRecord& record);
// nullptr before this rank has joined.
const MemberRecord* FindRank(const JobRecord& record, int32_t rank);

}  // namespace hetero::head
