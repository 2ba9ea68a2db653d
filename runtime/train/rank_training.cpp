#include "runtime/train/rank_training.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/await_space.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/ceiling_probe.h"
#include "runtime/train/checkpoint/state_files.h"
#include "runtime/train/checkpoint/state_tensors.h"
#include "runtime/train/loop.h"
#include "runtime/train/models/weights.h"
#include "runtime/train/rank_model.h"
#include "runtime/train/state_sync.h"

namespace hetero::train {
namespace {

// Nothing is dearer than what hours have trained.
constexpr base::Duration kPatienceForSpace = std::chrono::seconds(60);

}  // namespace

RankTraining::RankTraining(const TrainerOptions& options, const Collaborators& collaborators)
    : options_(options),
      schedule_(collaborators.schedule),
      batches_(collaborators.batches),
      observer_(collaborators.observer),
      clock_(collaborators.clock),
      comparisons_(clock_) {}

absl::Status RankTraining::Open() {
  at::set_num_threads(options_.threads);
  activity_ = "opening the model";
  HETERO_ASSIGN_OR_RETURN(RankModel opened, OpenRankModel(options_));
  layout_ = std::move(opened.layout);
  activity_ = "opening the GPU";
  device_ = MakeCpuDevice();
  if (options_.gpu) {
    HETERO_ASSIGN_OR_RETURN(device_, OpenGpu());
  }
  opened.model->to(device_->place());
  state_.emplace(std::move(opened.model), options_.job.spec.training.optimizer);
  return absl::OkStatus();
}

absl::Status RankTraining::Run(GlooGroup* group, Interrupts interrupts,
                               const std::function<void()>& agreed_to_stop) {
  interrupts_ = std::move(interrupts);
  parted_ = false;
  leavers_.clear();
  activity_ = "taking over the state";
  Agreement agreement(group, options_.rank, options_.world_size);
  HETERO_RETURN_IF_ERROR(TakeState(group, agreement));
  if (options_.ceiling_probe_steps > 0 && options_.generation == 1 && state_->standing.step == 0) {
    Probe(group, agreement);
  }
  const absl::Status status = RunLoop(group, agreement);
  if (!leavers_.empty()) {
    if (partitioned()) {
      agreed_to_stop();
      activity_ = "gathering a checkpoint";
      KeepState(group);
    } else {
      Part(group, agreement, leavers_);
    }
    parted_ = true;
    return status;
  }
  if (absl::IsCancelled(status) && partitioned()) {
    agreed_to_stop();
    activity_ = "gathering the last checkpoint";
    KeepState(group);
  }
  if (!status.ok()) return status;
  activity_ = "leaving";
  KeepState(group);
  complete_ = true;
  const absl::Status saved = SaveResult();
  delivered_ = options_.rank == 0 && saved.ok();
  // Nobody leaves before all are done: whoever had to begin again would be alone. A stop that comes
  // so late changes nothing.
  const absl::Status last = agreement.Exchange({.error = saved}).verdict;
  delivered_ = last.ok() || absl::IsCancelled(last);
  return delivered_ ? absl::OkStatus() : last;
}

// All ranks hold the same state, and some leave. The lowest of those that stay writes a checkpoint:
// it may be asked to leave next. Rank 0 keeps no lock that another process of it will need.
void RankTraining::Part(GlooGroup* group, Agreement& agreement,
                        const std::vector<int32_t>& leavers) {
  if (group == nullptr || !options_.job.spec.training.checkpoint) return;
  activity_ = "parting from ranks that leave";
  const auto leaves = [&leavers](int32_t rank) {
    return std::find(leavers.begin(), leavers.end(), rank) != leavers.end();
  };
  if (!leaves(0)) {
    if (checkpointer_) {
      checkpointer_->Keep(state_->standing, options_.generation,
                          GatherState(*state_, nullptr, model_name()), observer_);
    }
    return;
  }
  std::vector<int64_t> written = {-1};
  if (checkpointer_) {
    checkpointer_->Settle(observer_);
    written[0] = checkpointer_->written_step();
    checkpointer_.reset();
  }
  agreement.Broadcast(written, 0);
  int32_t writer = 0;
  while (leaves(writer)) ++writer;
  if (options_.rank == writer && written[0] != state_->standing.step) KeepStateForRankZero();
}

void RankTraining::KeepStateForRankZero() {
  activity_ = "writing a checkpoint for rank 0";
  absl::StatusOr<std::unique_ptr<Checkpointer>> checkpointer = MakeCheckpointer();
  if (!checkpointer.ok()) {
    log::Warning("no checkpoint of the step after which rank 0 left",
                 {{"reason", checkpointer.status().message()}});
    return;
  }
  (*checkpointer)
      ->Finish(state_->standing, options_.generation, GatherState(*state_, nullptr, model_name()),
               observer_);
}

absl::Status RankTraining::RunLoop(GlooGroup* group, Agreement& agreement) {
  TrainingLoop loop(options_, schedule_,
                    {.state = *state_,
                     .group = group,
                     .layout = layout_.get(),
                     .agreement = agreement,
                     .comparisons = comparisons_,
                     .batches = batches_,
                     .checkpointer = checkpointer_.get(),
                     .observer = observer_,
                     .phases = *phases_,
                     .device = *device_},
                    clock_, interrupts_);
  absl::Status status;
  try {
    status = loop.Run();
  } catch (...) {
    activity_ = loop.Where();
    throw;
  }
  activity_ = loop.Where();
  leavers_ = loop.leavers();
  return status;
}

void RankTraining::KeepStoppedState() {
  // Between steps every rank holds the state of the whole job, but for partitions.
  if (!checkpointer_ || !state_->established || partitioned()) return;
  checkpointer_->Finish(state_->standing, options_.generation,
                        GatherState(*state_, nullptr, model_name()), observer_);
}

// All ranks probe, or none. What fails in the stream says so again when the loop asks.
void RankTraining::Probe(GlooGroup* group, Agreement& agreement) {
  activity_ = "probing the ceiling";
  absl::StatusOr<feed::BatchStream*> stream = batches_.From(schedule_.IndexOfStep(0));
  using Taken = absl::StatusOr<std::unique_ptr<feed::Batch>>;
  Taken first = stream.ok() ? (*stream)->Next(interrupts_.wait) : Taken(stream.status());
  phases_->Charge(&Phases::wait);
  // A rank that is lost meanwhile ends it by an exception.
  const absl::Cleanup left_out = [this] { phases_->LeaveOut(); };
  const JobState job =
      agreement.Exchange({.stop = interrupts_.stop.stop_requested(), .error = first.status()});
  const absl::StatusOr<double> ceiling =
      job.verdict.ok() ? ProbeCeiling(options_, schedule_, **first,
                                      {.group = group, .agreement = agreement, .device = *device_},
                                      clock_, interrupts_)
                       : absl::StatusOr<double>(job.verdict);
  if (first.ok()) state_->held = *std::move(first);
  if (ceiling.ok()) {
    observer_.OnCeiling(*ceiling);
  } else {
    log::Warning("no ceiling was probed", {{"reason", ceiling.status().message()}});
  }
}

// The last checkpoint. Where the model is cut, rank 0 has the whole of it afterwards.
void RankTraining::KeepState(const GlooGroup* group) {
  if (!checkpointer_ && !partitioned()) return;
  whole_ = GatherState(*state_, group, model_name());
  if (checkpointer_) {
    checkpointer_->Finish(state_->standing, options_.generation, whole_, observer_);
  }
}

absl::Status RankTraining::OpenCheckpointer() {
  if (options_.rank != 0 || !options_.job.spec.training.checkpoint || checkpointer_) {
    return absl::OkStatus();
  }
  HETERO_ASSIGN_OR_RETURN(checkpointer_, MakeCheckpointer());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Checkpointer>> RankTraining::MakeCheckpointer() const {
  return Checkpointer::Open({.job = options_.job,
                             .run = options_.run,
                             .member = options_.member,
                             .world_size = options_.world_size,
                             .classes = options_.classes,
                             .input = options_.input,
                             .samples = options_.samples,
                             .dataset_fingerprint = options_.dataset_fingerprint,
                             .dataset_versions = options_.dataset_versions},
                            schedule_.training(), clock_, interrupts_.stop);
}

absl::Status RankTraining::TakeState(GlooGroup* group, Agreement& agreement) {
  const absl::Status opened = OpenCheckpointer();
  const bool first_time = !state_->established && !phases_;
  HETERO_RETURN_IF_ERROR((StateSync{.group = group,
                                    .agreement = agreement,
                                    .rank = options_.rank,
                                    .layout = layout_.get(),
                                    .make_model = [this] { return OpenRankModel(options_); },
                                    .checkpointer = checkpointer_.get(),
                                    .failure = opened,
                                    .stop = interrupts_.stop.stop_requested()}
                              .Run(*state_)));
  if (first_time) {
    observer_.OnResume(state_->standing.step, state_->standing.samples_consumed);
    if (checkpointer_ && !checkpointer_->notice().empty()) {
      observer_.OnNotice(checkpointer_->notice());
    }
    phases_.emplace(clock_);
  }
  observer_.OnDigest(state_->standing.digest.high(), state_->standing.digest.low(),
                     state_->standing.samples_consumed);
  return absl::OkStatus();
}

// Buffers are rank 0's, as everywhere.
absl::Status RankTraining::SaveResult() {
  if (options_.rank != 0 || options_.output_folder.empty()) return absl::OkStatus();
  activity_ = "writing the trained weights";
  const std::string path = absl::StrCat(options_.output_folder, "/", kModelFile);
  const auto write = [&]() -> absl::Status {
    if (!partitioned()) return SaveWeights(state_->model(), path);
    for (const auto& [name, bytes] : whole_()) {
      if (name == kModelFile) return base::WriteFileAtomically(path, bytes);
    }
    return absl::OkStatus();
  };
  const auto on_wait = [&](const absl::Status& full) {
    const std::string problem =
        absl::StrCat(full.message(), "; free some space there: it is tried again for ",
                     base::ToSeconds(kPatienceForSpace), " s");
    log::Warning(problem);
    observer_.OnNotice(problem);
  };
  const absl::Status status =
      base::WriteWhenThereIsSpace(write, kPatienceForSpace, clock_, on_wait, interrupts_.stop);
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(status.message(), "; free some space there or choose another output folder"));
  }
  if (status.ok()) log::Info("wrote the trained weights", {{"path", path}});
  if (!status.ok() || options_.deliver == nullptr) return status;
  activity_ = "delivering the trained weights";
  return options_.deliver();
}

}  // namespace hetero::train
