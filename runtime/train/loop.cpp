#include "runtime/train/loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/job/mix.h"
#include "runtime/train/checkpoint/state_files.h"
#include "runtime/train/models/frozen_layers.h"
#include "runtime/train/rank_model.h"
#include "runtime/train/step_batch.h"

namespace hetero::train {
namespace {

constexpr char kNonFiniteRemedy[] =
    "Lower spec.training.optimizer.learningRate, set spec.training.gradientClipNorm, or warm up "
    "with spec.training.schedule.warmupSteps";

LearningRateOptions MakeLearningRate(const TrainerOptions& options, const job::StepPlan& plan) {
  const api::Training& training = options.job.spec.training;
  return {.schedule = training.schedule,
          .learning_rate = training.optimizer.learning_rate,
          .world_size = options.world_size,
          .total_steps = plan.total_steps(),
          .steps_per_epoch = plan.steps_per_epoch()};
}

}  // namespace

TrainingLoop::TrainingLoop(const TrainerOptions& options, const job::Schedule& schedule,
                           const Collaborators& collaborators, base::Clock& clock,
                           Interrupts interrupts)
    : options_(options),
      training_(options.job.spec.training),
      schedule_(schedule),
      state_(collaborators.state),
      model_(state_.model()),
      source_(collaborators.batches),
      checkpointer_(collaborators.checkpointer),
      observer_(collaborators.observer),
      clock_(clock),
      interrupts_(std::move(interrupts)),
      group_(collaborators.group),
      place_(PlaceOf(options)),
      agreement_(collaborators.agreement),
      optimizer_(state_.optimizer()),
      learning_rate_(MakeLearningRate(options, schedule.training())),
      phases_(collaborators.phases),
      runner_(options,
              {.model = model_,
               .optimizer = optimizer_,
               .group = collaborators.group,
               .layout = collaborators.layout,
               .agreement = agreement_,
               .phases = phases_,
               .device = collaborators.device},
              clock),
      comparison_(model_, place_.partitions, agreement_, collaborators.comparisons) {}

std::string TrainingLoop::Where() const {
  const int64_t step = state_.standing.step;
  return evaluates_ ? absl::StrCat("the evaluation after step ", step)
                    : absl::StrCat("training step ", step + 1);
}

absl::Status TrainingLoop::Run() {
  const job::StepPlan& plan = schedule_.training();
  const Standing& standing = state_.standing;
  if (options_.job.spec.training.model.freeze.empty()) {
    model_.train();
  } else {
    TrainUnfrozen(model_);
  }
  HETERO_RETURN_IF_ERROR(Seek());
  if (EvaluationIsDue()) HETERO_RETURN_IF_ERROR(Evaluate(standing.step - 1));
  while (standing.step < plan.total_steps()) {
    const int64_t step = standing.step;
    const bool last = step + 1 == plan.total_steps();
    absl::Status status = TrainStep(step);
    if (status.ok() && (last || plan.IsLastOfEpoch(step))) status = FinishEpoch(step);
    if (status.ok() && EvaluationIsDue()) status = Evaluate(step);
    if (status.ok()) WriteCheckpoint(/*compared=*/place_.pipelines == 1);
    observer_.OnPhases(phases_.phases(), phases_.total_seconds());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Rank 0 decides. The ranks of the first pipeline hold together what it writes.
void TrainingLoop::WriteCheckpoint(bool compared) {
  const int64_t step = state_.standing.step;
  if (checkpointer_ != nullptr && interrupts_.save != nullptr &&
      interrupts_.save->exchange(false)) {
    checkpointer_->Want();
  }
  bool due = checkpointer_ != nullptr && checkpointer_->IsDueAfter(step, compared, observer_);
  if (place_.partitioned() && training_.checkpoint) {
    std::vector<int64_t> due_at_rank_0 = {due};
    agreement_.Broadcast(due_at_rank_0, 0);
    due = due_at_rank_0[0] != 0;
  }
  if (due) {
    CheckpointWriter::Source source = GatherState(state_, group_, training_.model.name);
    if (checkpointer_ != nullptr) {
      checkpointer_->Start(state_.standing, options_.generation, std::move(source));
    }
  }
  phases_.Charge(&Phases::checkpoint);
}

bool TrainingLoop::EvaluationIsDue() const {
  const Standing& standing = state_.standing;
  return standing.step > standing.evaluated_step && schedule_.EvaluatesAfter(standing.step - 1);
}

bool TrainingLoop::GenerationIsOver() const {
  return interrupts_.over.stop_requested() && !StopRequested();
}

Leave TrainingLoop::OwnLeave() const {
  if (interrupts_.leave == nullptr || !interrupts_.leave->asked()) return Leave::kNo;
  return interrupts_.leave->insists() ? Leave::kInsist : Leave::kWish;
}

// Places the stream where the state stands. A batch that was taken for a step that did not come
// about here is still held; unless an evaluation comes before that step, which others have not
// finished, for the stream then gives the batch again.
absl::Status TrainingLoop::Seek() {
  const Standing& standing = state_.standing;
  const bool evaluates_first = EvaluationIsDue();
  int64_t index = schedule_.IndexOfStep(standing.step);
  if (evaluates_first) index -= schedule_.evaluation_batches();
  if (state_.held && state_.held->ticket.step == standing.step && !evaluates_first) {
    ++index;
  } else if (state_.held) {
    // The step came about elsewhere, with this batch in its gradients.
    const bool consumed = state_.held->ticket.step < standing.step && state_.held->count() > 0;
    if (consumed) observer_.OnBatch(*state_.held);
    state_.held.reset();
  }
  HETERO_ASSIGN_OR_RETURN(batches_, source_.From(index));
  return absl::OkStatus();
}

absl::Status TrainingLoop::TrainStep(int64_t step) {
  phases_.Charge(&Phases::other);
  const Phases before = phases_.phases();
  const base::Instant start = clock_.Now();
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = NextBatch(step);
  phases_.Charge(&Phases::wait);
  if (!batch.ok() && GenerationIsOver()) return absl::AbortedError("the generation is over");

  RankState own = StateFor(batch, static_cast<uint64_t>(training_.seed));
  own.leave = OwnLeave();
  own.compare =
      options_.rank == 0 && place_.pipelines > 1 &&
      (comparison_.IsDue() || (checkpointer_ != nullptr && checkpointer_->WantsComparison(step)));
  if (absl::IsCancelled(own.error) && own.leave != Leave::kNo) {  // it waited long enough
    own.leave = Leave::kInsist;
    own.error = absl::OkStatus();
  }
  if (batch.ok()) state_.held = *std::move(batch);  // until the step is done
  absl::StatusOr<JobState> job = Agree(own);
  if (!job.ok()) return job.status();
  if (job->compare) {
    HETERO_RETURN_IF_ERROR(comparison_.Compare(absl::StrCat("after step ", step)).status());
    phases_.Charge(&Phases::all_reduce);
    WriteCheckpoint(/*compared=*/true);
  }
  const feed::Batch& held = *state_.held;
  state_.Begin();
  // Whatever draws from LibTorch's generator (dropout) draws the same when the step is done again.
  torch::manual_seed(
      job::HashWords(static_cast<uint64_t>(training_.seed),
                     {static_cast<uint64_t>(step), static_cast<uint64_t>(options_.rank)}));
  observer_.OnComputation(held);
  const double loss = ComputeGradients(step, held);
  if (absl::Status status = UpdateParameters(step); !status.ok()) return status;
  phases_.Charge(&Phases::optimizer);
  const int64_t count = held.count();
  if (count > 0) observer_.OnBatch(held);
  state_.Commit();
  Standing& standing = state_.standing;
  standing.step = step + 1;
  standing.digest += job->digest;
  standing.samples_consumed += job->samples;
  state_.held.reset();
  observer_.OnDigest(standing.digest.high(), standing.digest.low(), standing.samples_consumed);
  if (!stepped_) {
    stepped_ = true;
    log::Info("first step of the generation",
              {{"generation", options_.generation}, {"step", standing.step}});
  }
  phases_.Charge(&Phases::other);

  // The last stage has the losses of its pipeline.
  const int64_t loss_samples =
      place_.last() ? schedule_.training().PipelineShare(step, options_.rank).count : 0;
  const job::Step plan = schedule_.training().At(step);
  // A checkpoint of the step before is none of this one's.
  Phases phases = phases_.phases().Since(before);
  const double saving = std::exchange(phases.checkpoint, 0);
  state_.pending = PendingStep{.record = {.step = step + 1,
                                          .epoch = plan.epoch + 1,
                                          .step_in_epoch = plan.step_in_epoch + 1,
                                          .seconds = base::ToSeconds(clock_.Now() - start) - saving,
                                          .samples = job->samples,
                                          .phases = phases},
                               .loss = loss,
                               .samples = loss_samples};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<feed::Batch>> TrainingLoop::NextBatch(int64_t step) {
  if (state_.held) return std::move(state_.held);
  absl::StatusOr<std::unique_ptr<feed::Batch>> batch = batches_->Next(interrupts_.wait);
  if (!batch.ok()) return batch;
  const job::SlotRange slots = schedule_.training().Share(step, options_.rank);
  if (absl::Status status = CheckTicket(**batch, slots, step); !status.ok()) return status;
  return batch;
}

absl::StatusOr<JobState> TrainingLoop::Agree(RankState state) {
  state.stop = StopRequested();
  if (state.stop) state.error = absl::OkStatus();
  if (state_.pending) {
    state.loss = state_.pending->loss;
    state.loss_samples = state_.pending->samples;
  }
  const JobState job = agreement_.Exchange(state);
  phases_.Charge(&Phases::all_reduce);
  if (absl::Status status = ReportPending(job); !status.ok()) return status;
  leavers_ = job.leavers;
  if (!job.verdict.ok()) return job.verdict;
  return job;
}

absl::Status TrainingLoop::ReportPending(const JobState& state) {
  if (!state_.pending) return absl::OkStatus();
  StepRecord record = state_.pending->record;
  state_.pending.reset();
  record.loss = state.loss / static_cast<double>(std::max<int64_t>(state.loss_samples, 1));
  observer_.OnStep(record);
  if (std::isfinite(record.loss) || training_.stop_on_non_finite == api::NonFiniteAction::kSkip) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the loss of training step ", record.step,
                                                    " (epoch ", record.epoch, ") is ", record.loss,
                                                    ". ", kNonFiniteRemedy));
}

// Returns the sum of the losses that this rank computed.
double TrainingLoop::ComputeGradients(int64_t step, const feed::Batch& batch) {
  const int64_t count = schedule_.training().PipelineShare(step, options_.rank).count;
  const double scale =
      count == 0 ? 0
                 : schedule_.training().LossScale(step, options_.rank) / static_cast<double>(count);
  return runner_.ComputeGradients(batch, count, scale);
}

// All ranks know the same gradient norm here, so they decide alike without asking each other.
absl::Status TrainingLoop::UpdateParameters(int64_t step) {
  const double norm = runner_.GradientNorm();
  if (!std::isfinite(norm)) {
    if (training_.stop_on_non_finite == api::NonFiniteAction::kSkip) {
      log::Warning("skipped a step whose gradients are not finite", {{"step", step + 1}});
      // What went through the model may have spoiled its statistics too.
      state_.Abort();
      observer_.OnSkippedStep(step + 1);
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the gradient norm of training step ", step + 1, " (epoch ",
        schedule_.training().At(step).epoch + 1, ") is ", norm, ". ", kNonFiniteRemedy));
  }
  if (training_.gradient_clip_norm) {
    optimizer_.ClipGradients(norm, *training_.gradient_clip_norm);
  }
  phases_.Charge(&Phases::optimizer);
  // Whoever survives this step holds the job's buffers, and not what its own samples made of them.
  runner_.BroadcastBuffers();
  phases_.Charge(&Phases::all_reduce);
  optimizer_.Step(LearningRateAt(learning_rate_, step));
  return absl::OkStatus();
}

absl::Status TrainingLoop::FinishEpoch(int64_t step) {
  if (absl::StatusOr<JobState> state = Agree({}); !state.ok()) return state.status();
  const int64_t epoch = schedule_.training().At(step).epoch + 1;
  HETERO_ASSIGN_OR_RETURN(const uint32_t own,
                          comparison_.Compare(absl::StrCat("at epoch ", epoch)));
  phases_.Charge(&Phases::all_reduce);
  observer_.OnEpochEnd(epoch, own);
  return absl::OkStatus();
}

absl::Status TrainingLoop::Evaluate(int64_t step) {
  if (state_.pending) {
    if (absl::StatusOr<JobState> state = Agree({}); !state.ok()) return state.status();
  }
  const int64_t batches = schedule_.evaluation_batches();
  evaluates_ = true;
  EvaluationBatches planned(*batches_, schedule_, schedule_.IndexOfStep(step + 1) - batches);
  RankState own = runner_.Evaluate(batches, planned, observer_, interrupts_.wait);
  if (GenerationIsOver()) return absl::AbortedError("the generation is over");
  // One that was cut short does not count.
  own.leave = own.stop && !StopRequested() ? Leave::kInsist : OwnLeave();
  absl::StatusOr<JobState> sums = Agree(own);
  if (!sums.ok()) return sums.status();
  evaluates_ = false;
  const auto samples = static_cast<double>(std::max<int64_t>(sums->loss_samples, 1));
  const job::StepPlan& plan = schedule_.training();
  observer_.OnEvaluation({.epoch = (step + 1) / plan.steps_per_epoch(),
                          .step = step + 1,
                          .loss = sums->loss / samples,
                          .accuracy = static_cast<double>(sums->correct) / samples,
                          .samples = sums->loss_samples});
  state_.standing.evaluated_step = step + 1;
  return absl::OkStatus();
}

}  // namespace hetero::train
