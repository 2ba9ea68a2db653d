#include "runtime/process/rank_streams.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "api/role_type.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "runtime/feed/order_cost.h"
#include "runtime/feed/window.h"
#include "runtime/head/text_limits.h"
#include "runtime/job/sample_order.h"
#include "runtime/process/input_window.h"
#include "runtime/process/last_word.h"
#include "runtime/storage/stores.h"

namespace hetero::process {
namespace {

constexpr int kCoresBesideGpu = 2;  // training and communication of one rank
constexpr base::Duration kProbeBudget = std::chrono::milliseconds(150);

}  // namespace

job::Schedule::Options ScheduleOf(const api::HeteroTrainingJob& job,
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

RankSession::ValidationPass RankSession::OpenValidation() {
  if (!producer_->has_validation()) return {};
  job::Schedule::Options options = ScheduleOf(job_, *producer_);
  options.training.epochs.reset();
  options.training.max_steps = 1;
  options.validation_samples = producer_->dataset(job::Split::kValidation).size();
  options.evaluation.reset();
  auto stream = std::make_unique<ValidationStream>(*this, options);
  const int64_t batches = stream->batches();
  return {.batches = batches, .stream = std::move(stream)};
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
  const int64_t batch_bytes = int64_t{training.batch_size_per_worker} *
                              training.gradient_accumulation_steps *
                              training.parallelism.partitions * producer_->sample_bytes();
  HETERO_ASSIGN_OR_RETURN(const int64_t window,
                          InputWindow({.wanted = training.input_window,
                                       .memory_limit = base::CgroupMemoryLimit(),
                                       .ranks = RanksBeside(),
                                       .batch_bytes = batch_bytes}));
  batch_bytes_ = batch_bytes;
  const int spare = options_.local_share == feed::LocalShare::kBalanced ? SpareCores() : 0;
  // Under a CPU quota even threads of idle priority take from training, so they are no more than
  // what it leaves over.
  const bool needs_python = api::HasPython(job_.spec.pipeline);
  const bool shares =
      options_.local_share == feed::LocalShare::kBalanced && spare > 0 && !needs_python;
  const int threads = shares ? spare : CoresFromEnvironment();
  feed::TicketClient::Options stream{
      .rank = rank_,
      .generation = first_generation_,
      .byte_budget = window,
      // Python operators are the CPU workers' alone: the trainer's image may have no Python.
      .local_threads = needs_python                 ? 0
                       : options_.local_threads > 0 ? options_.local_threads
                                                    : threads,
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

std::vector<v1::OrderCost> RankSession::OrderCosts() const {
  const job::StepPlan& plan = schedule_->training();
  const int64_t ticket = plan.total_steps() == 0 ? 0 : plan.Share(0, rank_).count;
  const storage::RequestPrices prices =
      storage::Stores(job_.spec.storage).OptionsFor(job_.spec.dataset.uri).prices;
  std::vector<v1::OrderCost> costs;
  for (const feed::OrderCost& cost :
       feed::CostsOfOrders(producer_->dataset(job::Split::kTrain), job_, ticket)) {
    v1::OrderCost& out = costs.emplace_back();
    out.set_shuffle(job::ShuffleText(cost.shuffle));
    out.set_requests_per_sample(cost.requests_per_sample);
    out.set_bytes_per_sample(cost.bytes_per_sample);
    const bool priced = prices.per_request > 0 || prices.per_byte > 0;
    if (!priced || (prices.per_byte > 0 && cost.bytes_per_sample == 0)) continue;
    out.set_dollars_per_sample(cost.requests_per_sample * prices.per_request +
                               cost.bytes_per_sample * prices.per_byte);
  }
  return costs;
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

int64_t RankSession::WindowBatches() const {
  const int64_t fit = stream_options_.byte_budget / std::max<int64_t>(batch_bytes_, 1);
  return std::clamp(fit, feed::Window::kMinCapacity, stream_options_.max_window);
}

int32_t RankSession::RanksBeside() const {
  if (!LastWordFolderFromEnvironment().empty()) return world_size();  // `local` has them all
  for (const api::Role& role : job_.spec.roles) {
    if (role.name == options_.identity.member.role()) return role.ranks_per_replica();
  }
  return 1;
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

}  // namespace hetero::process
