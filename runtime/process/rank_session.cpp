#include "runtime/process/rank_session.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/process_environment.h"
#include "api/role_type.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/head/text_limits.h"
#include "runtime/process/last_word.h"
#include "runtime/process/log_lines.h"
#include "runtime/process/process_costs.h"
#include "runtime/process/rank_streams.h"
#include "runtime/process/ready.h"
#include "runtime/process/termination_message.h"

namespace hetero::process {
namespace {

// A head may wait long for its node; whoever starts the processes ends them when it takes too long.
constexpr base::Duration kWelcomeTimeout = std::chrono::hours(24);
constexpr base::Duration kFinishTimeout = std::chrono::seconds(5);

absl::StatusOr<int32_t> RankOf(const v1::Generation& generation, const v1::Identity& self) {
  for (const v1::Rank& rank : generation.ranks()) {
    if (rank.role() == self.role() && rank.index() == self.index() &&
        rank.local_rank() == self.local_rank()) {
      return rank.rank();
    }
  }
  return absl::InternalError(
      absl::StrCat("generation ", generation.number(), " has no rank for ", MemberName(self)));
}

// Of the trainers of one host one alone asks the driver, which knows all GPUs.
std::unique_ptr<ResourceSampler> StartSampler(const RankSession::Options& options,
                                              base::Clock& clock) {
  const bool first = options.identity.member.local_rank() == 0;
  return std::make_unique<ResourceSampler>(ResourceSampler::Options{.reads_gpus = first}, clock);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankSession>> RankSession::Join(Options options, base::Clock& clock,
                                                               std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<MetricsPort> metrics,
                          MetricsPort::Open(options.metrics_address, clock));
  std::unique_ptr<RankSession> session(
      new RankSession(std::move(options), std::move(metrics), clock, std::move(stop)));
  absl::Status status = session->WaitForJob();
  if (status.ok()) status = session->OpenReport();
  if (!status.ok()) return session->Finish(status);
  return session;
}

RankSession::RankSession(Options options, std::unique_ptr<MetricsPort> metrics, base::Clock& clock,
                         std::stop_token stop)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(std::move(metrics)),
      sampler_(options_.costs_told_by_another ? nullptr : StartSampler(options_, clock)),
      membership_(std::move(stop), options_.leaves_alone) {
  head::Member::Options join{.head_address = options_.identity.head_address,
                             .tls = options_.tls_to(api::kHeadType),
                             .hello = MakeHello(options_.identity)};
  join.hello.set_address(options_.identity.host);
  head::Member::Callbacks callbacks = membership_.MakeCallbacks(
      [this](const v1::Roster& roster) { OnRoster(roster.cpu_workers()); });
  callbacks.on_script_decision = options_.on_script_decision;
  callbacks.script_words = options_.script_words;
  member_ = head::Member::Start(
      std::move(join), std::move(callbacks), [this] { return TakeHeartbeat(/*last=*/false); },
      clock_);
}

RankSession::~RankSession() {
  // No callback may run while the stream goes away.
  member_.reset();
}

absl::Status RankSession::WaitForJob() {
  HETERO_ASSIGN_OR_RETURN(const v1::Welcome welcome, membership_.WaitForWelcome(kWelcomeTimeout));
  const api::ManifestResult manifest = api::ParseJobDocument(welcome.job_json());
  if (!manifest.errors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the head sent an invalid job:\n", api::FormatErrors(manifest.errors)));
  }
  job_ = manifest.job;
  // Opened while the others are still joining.
  HETERO_ASSIGN_OR_RETURN(producer_, feed::SampleProducer::Create(job_));
  member_->SetReady(MakeReady(*producer_));
  HETERO_ASSIGN_OR_RETURN(const Membership::OpenGeneration first, NextGeneration(0));
  first_generation_ = first.generation.number();
  reached_step_ = first.generation.reached_step();
  HETERO_ASSIGN_OR_RETURN(rank_, RankOf(first.generation, options_.identity.member));
  return absl::OkStatus();
}

absl::StatusOr<Membership::OpenGeneration> RankSession::NextGeneration(int64_t after) {
  const api::RunPolicy& policy = job_.spec.run_policy;
  const base::Duration deadline =
      std::chrono::seconds(policy.startup_deadline_seconds + policy.member_timeout_seconds + 5);
  HETERO_ASSIGN_OR_RETURN(Membership::OpenGeneration opened,
                          membership_.WaitForGeneration(after, deadline));
  const base::MutexLock lock(mutex_);
  newest_generation_ = opened.generation.number();
  if (opened.generation.number() > broken_generation_) {
    broken_generation_ = 0;
    script_failure_.reset();
  }
  return opened;
}

void RankSession::ReportBroken(int64_t generation, const std::string& why) {
  RankReport& report = this->report();
  report.OnBreak(why);
  const base::MutexLock lock(mutex_);
  broken_generation_ = generation;
}

void RankSession::ReportScriptFailure(const v1::ScriptFailure& failure) {
  report().OnBreak(failure.message());
  {
    const base::MutexLock lock(mutex_);
    broken_generation_ = failure.generation();
    script_failure_ = failure;
  }
  // Others fail because of it, and tell so.
  member_->Beat();
}

std::string RankSession::run() const {
  const char* run = std::getenv(api::environment::kJobUid);
  return run != nullptr ? run : job_.metadata.uid;
}

absl::Status RankSession::OpenReport() {
  if (!options_.dump_stream_folder.empty()) {
    HETERO_ASSIGN_OR_RETURN(dump_, feed::StreamDump::Create(options_.dump_stream_folder));
  }
  schedule_ = std::make_unique<job::Schedule>(ScheduleOf(job_, *producer_), rank_);
  HETERO_ASSIGN_OR_RETURN(stream_options_, StreamOptions());
  if (rank_ == 0) order_costs_ = OrderCosts();
  RankReport::Options options{.rank = rank_,
                              .seed = static_cast<uint64_t>(job_.spec.training.seed),
                              .window_bytes = stream_options_.byte_budget,
                              .window_batches = WindowBatches(),
                              .print = options_.print};
  if (metrics_) {
    options.on_step_seconds = [this](double seconds) { metrics_->ObserveStep(seconds); };
  }
  auto report = std::make_unique<RankReport>(std::move(options), schedule_.get(), clock_);
  {
    const base::MutexLock lock(mutex_);
    report_ = std::move(report);
    log::Info("generation opened", {{"generation", first_generation_},
                                    {"rank", rank_},
                                    {"ranks", world_size()},
                                    {"cpuWorkers", roster_.size()},
                                    {"steps", schedule_->training().total_steps()}});
  }
  if (metrics_) metrics_->SetReady();
  // A fresh start asks for its first batches while the process group forms.
  const api::Training& training = job_.spec.training;
  if (first_generation_ == 1 && !training.checkpoint && !training.script) BatchesFrom(0);
  return absl::OkStatus();
}

RankReport& RankSession::report() {
  const base::MutexLock lock(mutex_);
  return *report_;
}

void RankSession::OnRoster(const google::protobuf::RepeatedPtrField<v1::CpuWorker>& workers) {
  const base::MutexLock lock(mutex_);
  roster_.clear();
  for (const v1::CpuWorker& worker : workers) {
    roster_.push_back({.name = absl::StrCat(worker.role(), "-", worker.index()),
                       .address = worker.address(),
                       .incarnation = worker.incarnation(),
                       .leaving = worker.leaving()});
  }
  if (batches_ != nullptr) batches_->SetRoster(roster_);
  if (validation_ != nullptr) validation_->SetRoster(roster_);
}

void RankSession::OnBatch(const feed::Batch& batch) {
  feed::StreamStats stats;
  {
    const base::MutexLock lock(mutex_);
    if (batches_ != nullptr) stats = batches_->stats();
  }
  report().OnBatch(batch, stats);
  if (dump_ == nullptr) return;
  const absl::Status dumped = dump_->Write(batch);
  if (!dumped.ok()) log::Warning("batch not dumped", {{"error", dumped.message()}});
}

// Before the job has begun the head is told nothing, and a scrape what the process costs.
void RankSession::PublishWaiting() {
  if (!metrics_) return;
  v1::Heartbeat waiting;
  SetProcessCosts(*waiting.mutable_counters());
  metrics_->UpdateRank(waiting);
}

v1::Heartbeat RankSession::TakeHeartbeat(bool last) {
  v1::Heartbeat used;  // without the lock, which training takes for each batch
  if (sampler_ != nullptr) sampler_->Take(last, used);
  AddLogLines(used);
  const base::MutexLock lock(mutex_);
  if (report_ == nullptr) {
    PublishWaiting();
    return used;
  }
  v1::Heartbeat heartbeat = report_->Take();
  heartbeat.mutable_resources()->Swap(used.mutable_resources());
  heartbeat.mutable_log_lines()->Swap(used.mutable_log_lines());
  if (options_.costs_told_by_another) ClearProcessCosts(*heartbeat.mutable_counters());
  if (options_.other_cpu_seconds) {
    v1::Counters& counters = *heartbeat.mutable_counters();
    counters.set_cpu_seconds(counters.cpu_seconds() + options_.other_cpu_seconds());
  }
  heartbeat.set_broken_generation(broken_generation_);
  if (script_failure_) *heartbeat.mutable_script_failure() = *script_failure_;
  AddPlacement(&heartbeat);
  heartbeat.mutable_order_costs()->Assign(order_costs_.begin(), order_costs_.end());
  AddFaults(&heartbeat);
  if (metrics_) metrics_->UpdateRank(heartbeat);
  return heartbeat;
}

absl::Status RankSession::Finish(absl::Status result) {
  result = membership_.EndingWith(std::move(result));
  v1::Finished last;
  last.set_ok(result.ok());
  last.set_stopped(absl::IsCancelled(result) || absl::IsAborted(result));
  last.set_leaving(absl::IsAborted(result));
  last.set_message(
      base::ToUtf8({result.message().data(), result.message().size()}, head::kMaxText));
  {
    const base::MutexLock lock(mutex_);
    last.set_generation(newest_generation_);
  }
  *last.mutable_last() = TakeHeartbeat(/*last=*/true);
  last = member_->Complete(std::move(last));
  WriteLastWord(LastWordFolderFromEnvironment(), options_.identity.member, last);
  const absl::Status answer = member_->Finish(last, kFinishTimeout);
  if (!answer.ok()) log::Warning("the head did not hear the end", {{"error", answer.message()}});
  if (result.ok() && rank_ == 0) {
    WriteTerminationMessage(TerminationLogFromEnvironment(),
                            VerdictOf(last.last().progress(), report().last_evaluation()));
  }
  return result;
}

}  // namespace hetero::process
