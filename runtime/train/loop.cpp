#include "runtime/train/loop.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/loss.h"
#include "runtime/train/parameter_crc.h"

namespace hetero::train {
namespace {

constexpr char kNonFiniteRemedy[] =
    "Lower spec.training.optimizer.learningRate, set spec.training.gradientClipNorm, or warm up "
    "with "
    "spec.training.schedule.warmupSteps";

LearningRateOptions MakeLearningRate(const TrainerOptions& options, const job::StepPlan& plan) {
  const api::Training& training = options.job.spec.training;
  return {.schedule = training.schedule,
          .learning_rate = training.optimizer.learning_rate,
          .world_size = options.world_size,
          .total_steps = plan.total_steps(),
          .steps_per_epoch = plan.steps_per_epoch()};
}

std::unique_ptr<DataParallel> MakeDataParallel(Model& model, GlooGroup* group, base::Clock& clock) {
  if (group == nullptr) return nullptr;
  return std::make_unique<DataParallel>(model, *group, clock);
}

absl::Status CheckTicket(const feed::Batch& batch, const job::SlotRange& slots, int64_t step) {
  const feed::Ticket& ticket = batch.ticket;
  if (ticket.split == job::Split::kTrain && ticket.step == step && ticket.slots == slots &&
      batch.count() == slots.count) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "the input gave ", batch.count(), " samples from slot ", ticket.slots.first, " of step ",
      ticket.step, " where step ", step, " needs ", slots.count, " from slot ", slots.first));
}

}  // namespace

TrainingLoop::TrainingLoop(const TrainerOptions& options, const job::Schedule& schedule,
                           Model& model, GlooGroup* group, feed::BatchStream& batches,
                           Observer& observer, base::Clock& clock, std::stop_token stop)
    : options_(options),
      training_(options.job.spec.training),
      schedule_(schedule),
      model_(model),
      batches_(batches),
      observer_(observer),
      clock_(clock),
      stop_(std::move(stop)),
      agreement_(group, options.rank, options.world_size),
      input_(options.conversion, options.input.channels, model.channels_last()),
      data_parallel_(MakeDataParallel(model, group, clock)),
      optimizer_(training_.optimizer, model.parameters()),
      learning_rate_(MakeLearningRate(options, schedule.training())),
      phases_(clock) {}

std::string TrainingLoop::Where() const { return absl::StrCat("training step ", step_ + 1); }

absl::Status TrainingLoop::Run() {
  const job::StepPlan& plan = schedule_.training();
  model_.train();
  for (step_ = 0; step_ < plan.total_steps(); ++step_) {
    const bool last = step_ + 1 == plan.total_steps();
    absl::Status status = TrainStep(step_);
    if (status.ok() && (last || plan.IsLastOfEpoch(step_))) status = FinishEpoch(step_);
    if (status.ok() && schedule_.EvaluatesAfter(step_)) status = Evaluate(step_);
    observer_.OnPhases(phases_.phases(), phases_.total_seconds());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::TrainStep(int64_t step) {
  const base::Instant start = clock_.Now();
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = NextBatch(step);
  phases_.Charge(&Phases::wait);

  absl::StatusOr<JobState> state = Agree(StateFor(batch));
  if (!state.ok()) return state.status();
  digest_ += state->digest;
  samples_consumed_ += state->samples;
  if ((*batch)->count() > 0) observer_.OnBatch(**batch);
  observer_.OnDigest(digest_.high(), digest_.low(), samples_consumed_);
  if (data_parallel_) data_parallel_->BroadcastBuffers();
  phases_.Charge(&Phases::all_reduce);

  const double loss = ComputeGradients(step, **batch);
  if (absl::Status status = UpdateParameters(step); !status.ok()) return status;
  phases_.Charge(&Phases::optimizer);

  const job::Step plan = schedule_.training().At(step);
  pending_ = PendingStep{.record = {.step = step + 1,
                                    .epoch = plan.epoch + 1,
                                    .step_in_epoch = plan.step_in_epoch + 1,
                                    .seconds = base::ToSeconds(clock_.Now() - start),
                                    .samples = state->samples},
                         .loss = loss,
                         .samples = (*batch)->count()};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<feed::Batch>> TrainingLoop::NextBatch(int64_t step) {
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = batches_.Next(stop_);
  if (!batch.ok()) return batch;
  const job::SlotRange slots = schedule_.training().Share(step, options_.rank);
  if (absl::Status status = CheckTicket(**batch, slots, step); !status.ok()) return status;
  return batch;
}

RankState TrainingLoop::StateFor(const absl::StatusOr<std::unique_ptr<feed::Batch>>& batch) const {
  RankState state;
  if (!batch.ok()) {
    state.error = batch.status();
    return state;
  }
  const feed::Batch& held = **batch;
  state.samples = held.count();
  for (int64_t i = 0; i < held.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    state.digest.Add(static_cast<uint64_t>(training_.seed), held.ticket.epoch, held.ticket.step,
                     held.ticket.slots.first + i, held.sample_ids[at], held.crcs[at]);
  }
  return state;
}

absl::StatusOr<JobState> TrainingLoop::Agree(RankState state) {
  state.stop = stop_.stop_requested();
  if (state.stop) state.error = absl::OkStatus();
  if (pending_) {
    state.loss = pending_->loss;
    state.loss_samples = pending_->samples;
  }
  const JobState job = agreement_.Exchange(state);
  phases_.Charge(&Phases::all_reduce);
  if (absl::Status status = ReportPending(job); !status.ok()) return status;
  if (!job.verdict.ok()) return job.verdict;
  return job;
}

absl::Status TrainingLoop::ReportPending(const JobState& state) {
  if (!pending_) return absl::OkStatus();
  StepRecord record = pending_->record;
  pending_.reset();
  record.loss = state.loss / static_cast<double>(std::max<int64_t>(state.loss_samples, 1));
  observer_.OnStep(record);
  if (std::isfinite(record.loss) || training_.stop_on_non_finite == api::NonFiniteAction::kSkip) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the loss of training step ", record.step,
                                                    " (epoch ", record.epoch, ") is ", record.loss,
                                                    ". ", kNonFiniteRemedy));
}

// Returns the sum of the losses of this rank's samples.
double TrainingLoop::ComputeGradients(int64_t step, const feed::Batch& batch) {
  const int64_t count = batch.count();
  const int64_t at_once = training_.batch_size_per_worker;
  const double scale =
      count == 0 ? 0
                 : schedule_.training().LossScale(step, options_.rank) / static_cast<double>(count);
  optimizer_.ZeroGradients();
  phases_.Charge(&Phases::optimizer);
  double loss = 0;
  int64_t first = 0;
  do {
    const Piece piece = MakePiece(batch, first, std::min(at_once, count - first));
    phases_.Charge(&Phases::host_to_device);
    first += at_once;
    loss += RunPiece(piece, scale, /*reduce=*/first >= count);
  } while (first < count);
  return loss;
}

TrainingLoop::Piece TrainingLoop::MakePiece(const feed::Batch& batch, int64_t first,
                                            int64_t count) const {
  // A rank without a sample takes part with an empty picture that it does not own. Batch norm needs
  // two samples: the only one stands twice and counts half each time, which gives the loss and the
  // gradient of one.
  const int64_t rows =
      model_.has_batch_norm() ? std::max<int64_t>(count, 2) : std::max<int64_t>(count, 1);
  const api::ImageShape& shape = options_.input;
  Piece piece;
  piece.padded = rows != count;
  if (count == 0) {
    piece.images = torch::zeros({rows, shape.channels, shape.height, shape.width});
    piece.labels = torch::zeros({rows}, torch::kInt64);
    piece.ownership = torch::zeros({rows});
    return piece;
  }
  piece.images = input_.Images(batch, first, count);
  piece.labels = input_.Labels(batch, first, count);
  if (piece.padded) {
    piece.images = piece.images.repeat({rows, 1, 1, 1});
    piece.labels = piece.labels.repeat({rows});
  }
  piece.ownership = torch::full({rows}, static_cast<float>(count) / static_cast<float>(rows));
  return piece;
}

// Adds the gradients of `piece`, its losses times `scale`, and returns the sum of its losses.
double TrainingLoop::RunPiece(const Piece& piece, double scale, bool reduce) {
  std::vector<torch::Tensor> saved;
  if (piece.padded) {
    for (const torch::Tensor& buffer : model_.buffers()) saved.push_back(buffer.clone());
  }
  reduce = reduce && data_parallel_ != nullptr;
  if (reduce) data_parallel_->BeforeForward();
  const torch::Tensor logits = model_.forward(piece.images);
  const torch::Tensor loss =
      (LossPerSample(training_.loss, logits, piece.labels) * piece.ownership).sum();
  if (reduce) data_parallel_->BeforeBackward();
  phases_.Charge(&Phases::forward);
  (loss * scale).backward();
  if (reduce) {
    phases_.ChargeUntil(&Phases::backward, data_parallel_->gradients_ready());
    phases_.Charge(&Phases::all_reduce);
  }
  if (piece.padded) {
    torch::NoGradGuard no_grad;
    const std::vector<torch::Tensor> buffers = model_.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(saved[i]);
  }
  phases_.Charge(&Phases::backward);
  return loss.item<double>();
}

// All ranks hold the same gradients here, so they decide alike without asking each other.
absl::Status TrainingLoop::UpdateParameters(int64_t step) {
  const double norm = optimizer_.GradientNorm();
  if (!std::isfinite(norm)) {
    if (training_.stop_on_non_finite == api::NonFiniteAction::kSkip) {
      log::Warning("skipped a step whose gradients are not finite", {{"step", step + 1}});
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the gradient norm of training step ", step + 1, " (epoch ",
        schedule_.training().At(step).epoch + 1, ") is ", norm, ". ", kNonFiniteRemedy));
  }
  if (training_.gradient_clip_norm) {
    optimizer_.ClipGradients(norm, *training_.gradient_clip_norm);
  }
  optimizer_.Step(LearningRateAt(learning_rate_, step));
  return absl::OkStatus();
}

absl::Status TrainingLoop::FinishEpoch(int64_t step) {
  if (absl::StatusOr<JobState> state = Agree({}); !state.ok()) return state.status();
  if (data_parallel_) data_parallel_->BroadcastBuffers();
  const int64_t epoch = schedule_.training().At(step).epoch + 1;
  const uint32_t own = ParameterCrc(model_);
  const std::vector<uint32_t> all = agreement_.Gather(own);
  phases_.Charge(&Phases::all_reduce);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      return absl::DataLossError(absl::StrCat(
          "ranks diverged at epoch ", epoch, ": the parameters of rank ", rank,
          " differ from those of rank 0. Check that all GPU workers run the same image on the same "
          "kind of machine"));
    }
  }
  observer_.OnEpochEnd(epoch, own);
  return absl::OkStatus();
}

absl::Status TrainingLoop::Evaluate(int64_t step) {
  if (pending_) {
    if (absl::StatusOr<JobState> state = Agree({}); !state.ok()) return state.status();
  }
  if (data_parallel_) data_parallel_->BroadcastBuffers();
  phases_.Charge(&Phases::all_reduce);
  const RankState own =
      EvaluateShare(model_, input_, training_.loss, schedule_.evaluation_batches(), batches_,
                    observer_, phases_, stop_);
  absl::StatusOr<JobState> sums = Agree(own);
  if (!sums.ok()) return sums.status();
  const auto samples = static_cast<double>(std::max<int64_t>(sums->loss_samples, 1));
  const job::StepPlan& plan = schedule_.training();
  observer_.OnEvaluation({.epoch = (step + 1) / plan.steps_per_epoch(),
                          .step = step + 1,
                          .loss = sums->loss / samples,
                          .accuracy = static_cast<double>(sums->correct) / samples,
                          .samples = sums->loss_samples});
  return absl::OkStatus();
}

}  // namespace hetero::train
