#include "runtime/process/rank_session.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/process_environment.h"
#include "api/role_type.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/head/text_limits.h"
#include "runtime/process/last_word.h"
#include "runtime/process/ready.h"
#include "runtime/process/termination_message.h"

namespace hetero::process {
namespace {

// A head may wait long for its node; whoever starts the processes ends them when it takes too long.
constexpr base::Duration kWelcomeTimeout = std::chrono::hours(24);
constexpr int kCoresBesideGpu = 2;  // training and communication of one rank
constexpr base::Duration kProbeBudget = std::chrono::milliseconds(150);
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

// Most of a pod's memory is for the model: waiting batches take a quarter of its limit at most.
int64_t WithinMemory(int64_t budget) {
  const std::optional<int64_t> limit = base::CgroupMemoryLimit();
  return limit ? std::min(budget, *limit / 4) : budget;
}

job::Schedule::Options ScheduleOptions(const api::HeteroTrainingJob& job,
                                       const feed::SampleProducer& producer) {
  const api::Training& training = job.spec.training;
  return {.training = {.samples = producer.dataset(job::Split::kTrain).size(),
                       .batch_size_per_worker = training.batch_size_per_worker,
                       .ranks = job.spec.world_size(),
                       .partitions = training.parallelism.partitions,
                       .accumulation = training.gradient_accumulation_steps,
                       .last_batch = training.last_batch,
                       .epochs = training.epochs,
                       .max_steps = training.max_steps},
          // A script validates when it wants to.
          .validation_samples = producer.has_validation() && !training.script.has_value()
                                    ? producer.dataset(job::Split::kValidation).size()
                                    : 0,
          .evaluation = training.evaluation};
}

feed::StreamStats Sum(const feed::StreamStats& a, const feed::StreamStats& b) {
  feed::WaitCauses waits = a.waits;
  waits.Add(b.waits);
  return {.batches = a.batches + b.batches,
          .samples = a.samples + b.samples,
          .bytes = a.bytes + b.bytes,
          .bytes_waiting = b.bytes_waiting,
          .wait_seconds = a.wait_seconds + b.wait_seconds,
          .waits = waits,
          .tickets_reissued = a.tickets_reissued + b.tickets_reissued,
          .duplicates_dropped = a.duplicates_dropped + b.duplicates_dropped,
          .tickets_moved = a.tickets_moved + b.tickets_moved,
          .batches_damaged = a.batches_damaged + b.batches_damaged};
}

}  // namespace

// A ticket client that knows where in the schedule it stands. Its counters go on from those of the
// client before it.
class RankSession::PositionedStream : public feed::BatchStream {
 public:
  // `faults`: of the client before it, that were not told yet.
  PositionedStream(std::unique_ptr<feed::TicketClient> client, int64_t next,
                   const feed::StreamStats& earlier, std::vector<feed::WorkerFault> faults)
      : client_(std::move(client)), next_(next), earlier_(earlier), faults_(std::move(faults)) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    absl::StatusOr<std::unique_ptr<feed::Batch>> batch = client_->Next(std::move(stop));
    if (batch.ok()) ++next_;
    return batch;
  }
  feed::StreamStats stats() const override { return Sum(earlier_, client_->stats()); }
  feed::PlacementState placement() const { return client_->placement(); }
  std::vector<feed::WorkerFault> TakeFaults() {
    std::vector<feed::WorkerFault> faults = std::exchange(faults_, {});
    for (feed::WorkerFault& fault : client_->TakeFaults()) faults.push_back(std::move(fault));
    return faults;
  }
  void SetRoster(const std::vector<feed::WorkerAddress>& roster) { client_->SetRoster(roster); }
  int64_t next() const { return next_; }

 private:
  const std::unique_ptr<feed::TicketClient> client_;
  int64_t next_;  // of the thread that calls Next()
  const feed::StreamStats earlier_;
  std::vector<feed::WorkerFault> faults_;
};

// A validation pass: the evaluation after the only step of a schedule of its own.
class RankSession::ValidationStream : public feed::BatchStream {
 public:
  ValidationStream(RankSession& session, const job::Schedule::Options& options)
      : session_(session), schedule_(options, session.rank_) {
    feed::TicketClient::Options stream = session.stream_options_;
    stream.first_batch = schedule_.IndexOfStep(0) + 1;
    stream.suspect_batch.reset();
    client_ = feed::TicketClient::Start(std::move(stream), &schedule_, session.producer_.get(),
                                        session.clock_);
    const base::MutexLock lock(session_.mutex_);
    session_.validation_ = client_.get();
    client_->SetRoster(session_.roster_);
  }
  ~ValidationStream() override {
    const base::MutexLock lock(session_.mutex_);
    session_.validation_ = nullptr;
  }

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    return client_->Next(std::move(stop));
  }
  feed::StreamStats stats() const override { return client_->stats(); }
  int64_t batches() const { return schedule_.evaluation_batches(); }

 private:
  RankSession& session_;
  const job::Schedule schedule_;
  std::unique_ptr<feed::TicketClient> client_;
};

RankSession::ValidationPass RankSession::OpenValidation() {
  if (!producer_->has_validation()) return {};
  job::Schedule::Options options = ScheduleOptions(job_, *producer_);
  options.training.epochs.reset();
  options.training.max_steps = 1;
  options.validation_samples = producer_->dataset(job::Split::kValidation).size();
  options.evaluation.reset();
  auto stream = std::make_unique<ValidationStream>(*this, options);
  const int64_t batches = stream->batches();
  return {.batches = batches, .stream = std::move(stream)};
}

absl::StatusOr<std::unique_ptr<RankSession>> RankSession::Join(Options options, base::Clock& clock,
                                                               std::stop_token stop) {
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<MetricsPort> metrics,
                          MetricsPort::Open(options.metrics_address));
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
      std::move(join), std::move(callbacks), [this] { return TakeHeartbeat(); }, clock_);
}

RankSession::~RankSession() {
  // No callback may run while the stream goes away.
  member_.reset();
}

absl::Status RankSession::WaitForJob() {
  HETERO_ASSIGN_OR_RETURN(const v1::Welcome welcome, membership_.WaitForWelcome(kWelcomeTimeout));
  const api::ManifestResult manifest = api::ParseManifest(welcome.job_json());
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
  schedule_ = std::make_unique<job::Schedule>(ScheduleOptions(job_, *producer_), rank_);
  HETERO_ASSIGN_OR_RETURN(stream_options_, StreamOptions());
  auto report = std::make_unique<RankReport>(
      RankReport::Options{.rank = rank_,
                          .seed = static_cast<uint64_t>(job_.spec.training.seed),
                          .print = options_.print},
      schedule_.get(), clock_);
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

feed::BatchStream& RankSession::BatchesFrom(int64_t index) {
  std::unique_ptr<PositionedStream> old;
  {
    const base::MutexLock lock(mutex_);
    if (batches_ != nullptr && batches_->next() == index) return *batches_;
    old = std::move(batches_);
  }
  feed::StreamStats earlier;
  std::vector<feed::WorkerFault> faults;
  if (old != nullptr) {
    earlier = old->stats();
    faults = old->TakeFaults();
    // Without the lock: its streams end on threads that may be about to tell of a roster.
    old.reset();
  }
  const bool replaces = first_generation_ > 1;  // a process that ended, and not known of what
  if (replaces && !stream_options_.suspect_batch.has_value()) {
    const int64_t step = std::min(reached_step_, schedule_->training().total_steps());
    stream_options_.suspect_batch = std::max(index, schedule_->IndexOfStep(step));
  }
  const base::MutexLock lock(mutex_);
  batches_ =
      std::make_unique<PositionedStream>(OpenStream(index), index, earlier, std::move(faults));
  batches_->SetRoster(roster_);
  return *batches_;
}

std::unique_ptr<feed::TicketClient> RankSession::OpenStream(int64_t index) const {
  feed::TicketClient::Options options = stream_options_;
  options.first_batch = index;
  return feed::TicketClient::Start(options, schedule_.get(), producer_.get(), clock_);
}

absl::StatusOr<feed::TicketClient::Options> RankSession::StreamOptions() {
  const api::Training& training = job_.spec.training;
  const int64_t batch_bytes =
      int64_t{training.batch_size_per_worker} * training.gradient_accumulation_steps *
      training.parallelism.partitions * producer_->pipeline(job::Split::kTrain).output_bytes();
  const int spare = options_.local_share == feed::LocalShare::kBalanced ? SpareCores() : 0;
  // Under a CPU quota even threads of idle priority take from training, so they are no more than
  // what it leaves over.
  const bool shares = options_.local_share == feed::LocalShare::kBalanced && spare > 0;
  const int threads = shares ? spare : CoresFromEnvironment();
  feed::TicketClient::Options stream{
      .rank = rank_,
      .generation = first_generation_,
      .byte_budget = std::max(WithinMemory(options_.byte_budget), 2 * batch_bytes),
      .local_threads = options_.local_threads > 0 ? options_.local_threads : threads,
      .local_share = shares ? options_.local_share : feed::LocalShare::kLastResort,
      .expected = producer_.get(),
      .tls = options_.tls_to(api::kCpuWorkerType)};
  HETERO_RETURN_IF_ERROR(PlaceOperators(spare, shares, &stream));
  return stream;
}

absl::Status RankSession::PlaceOperators(int spare, bool shares,
                                         feed::TicketClient::Options* stream) {
  HETERO_ASSIGN_OR_RETURN(const std::vector<int32_t> allowed,
                          feed::AllowedCuts(job_.spec.pipeline, *producer_));
  // Rank 0 also measures where there is no choice, to tell what each operator costs.
  const bool measures = rank_ == 0 || (allowed.size() > 1 && spare > 0);
  cuts_ = feed::MeasureCuts(allowed, *producer_, measures ? kProbeBudget : base::Duration::zero(),
                            clock_);
  bool priced = job_.spec.autoscaling == api::Switch::kEnabled;
  for (const api::Role& role : job_.spec.roles) {
    if (role.type == api::RoleType::kCpuWorker) priced = priced && !role.price_per_hour.empty();
  }
  stream->placement = {.cuts = cuts_,
                       .trainer_cores = static_cast<double>(std::max(spare, 0)),
                       .shares_whole_batches = shares,
                       .fewer_workers_cost_less = priced};
  if (!allowed.empty() && allowed.back() > 0) stream->finisher = producer_.get();
  stream->finisher_threads = std::max(spare, 1);
  return absl::OkStatus();
}

void RankSession::AddPlacement(v1::Heartbeat* heartbeat) const {
  if (rank_ != 0 || batches_ == nullptr) return;
  const feed::PlacementState state = batches_->placement();
  if (!state.choice) return;
  for (const feed::PlacedOperator& entry : feed::DescribePlacement(
           job_.spec.pipeline, *producer_, cuts_, *state.choice, state.worker_seconds)) {
    v1::PlacementReport* out = heartbeat->add_placement();
    out->set_op(entry.op);
    out->set_on_trainer(entry.on_trainer);
    out->set_reason(entry.reason);
    out->set_worker_seconds(entry.worker_seconds);
    out->set_trainer_seconds(entry.trainer_seconds);
    out->set_bytes_in(entry.bytes_in);
    out->set_bytes_out(entry.bytes_out);
  }
}

void RankSession::AddFaults(v1::Heartbeat* heartbeat) const {
  if (batches_ == nullptr) return;
  for (const feed::WorkerFault& fault : batches_->TakeFaults()) {
    v1::FaultReport* out = heartbeat->add_faults();
    out->set_unix_ns(
        std::chrono::duration_cast<base::Duration>(fault.time.time_since_epoch()).count());
    out->set_what(base::ToUtf8(fault.what, head::kMaxListedText));
    out->set_recovery_seconds(fault.recovery_seconds.value_or(0));
  }
}

int RankSession::SpareCores() const {
  int ranks = 1;
  bool on_gpu = true;
  for (const api::Role& role : job_.spec.roles) {
    if (role.name != options_.identity.member.role()) continue;
    ranks = std::max(1, role.ranks_per_replica());
    on_gpu = role.gpus_per_replica.value_or(1) > 0;
  }
  const int own = CoresFromEnvironment() / ranks;
  if (on_gpu) return own - kCoresBesideGpu;
  return options_.training_threads > 0 ? own - options_.training_threads : 0;
}

void RankSession::OnRoster(const google::protobuf::RepeatedPtrField<v1::CpuWorker>& workers) {
  const base::MutexLock lock(mutex_);
  roster_.clear();
  for (const v1::CpuWorker& worker : workers) {
    roster_.push_back(
        {absl::StrCat(worker.role(), "-", worker.index()), worker.address(), worker.incarnation()});
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

v1::Heartbeat RankSession::TakeHeartbeat() {
  const base::MutexLock lock(mutex_);
  if (report_ == nullptr) return {};
  v1::Heartbeat heartbeat = report_->Take();
  heartbeat.set_broken_generation(broken_generation_);
  if (script_failure_) *heartbeat.mutable_script_failure() = *script_failure_;
  AddPlacement(&heartbeat);
  AddFaults(&heartbeat);
  if (metrics_) metrics_->Update(heartbeat);
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
  *last.mutable_last() = TakeHeartbeat();
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
