#include "runtime/train/trainer.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/agreement.h"
#include "runtime/train/ceiling_probe.h"
#include "runtime/train/checkpoint/checkpointer.h"
#include "runtime/train/checkpoint/state_files.h"
#include "runtime/train/device.h"
#include "runtime/train/loop.h"
#include "runtime/train/models/model.h"
#include "runtime/train/models/weights.h"
#include "runtime/train/pipeline_parallel/partition.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/process_group/group_former.h"
#include "runtime/train/state_sync.h"
#include "runtime/train/state_tensors.h"
#include "runtime/train/stop_watcher.h"
#include "runtime/train/training_state.h"

namespace hetero::train {
namespace {

// A step that all ranks can still finish together ends a job more cleanly than a cut does.
constexpr base::Duration kStopGrace = std::chrono::seconds(1);

// Where the model is cut, no rank can write a checkpoint alone: a step may be finished and the
// partitions travel to rank 0 before a stop cuts the connections.
constexpr base::Duration kPartitionedStopGrace = std::chrono::seconds(10);
constexpr base::Duration kGatherGrace = std::chrono::seconds(15);

// How long after the end of its generation a rank may take to leave: to the end of a step's forward
// or of a checkpoint. What holds it longer is nothing that ends.
constexpr base::Duration kLeavingPatience = std::chrono::minutes(10);

constexpr char kWeightsFile[] = "model.safetensors";

absl::Status CheckOptions(const TrainerOptions& options) {
  const api::Training& training = options.job.spec.training;
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " of ", options.world_size, " does not exist"));
  }
  if (training.batch_size_per_worker < 1) {
    return absl::InvalidArgumentError("spec.training.batchSizePerWorker must be at least 1");
  }
  if (options.world_size % training.parallelism.partitions != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.training.parallelism.partitions: must divide the number of ranks (",
                     options.world_size, "), got ", training.parallelism.partitions));
  }
  if (training.loss.name != "CrossEntropy") {
    return absl::InvalidArgumentError(absl::StrCat("spec.training.loss.name: there is no loss \"",
                                                   training.loss.name, "\"; use CrossEntropy"));
  }
  return absl::OkStatus();
}

// The process that takes this one's place joins the next generation as any replaced rank does.
[[noreturn]] void EndProcess() {
  log::Error(
      "this rank does not get out of a process group whose generation is over; ending the "
      "process, so that another takes its place");
  std::_Exit(1);
}

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const job::Schedule& schedule, BatchSource& batches,
          Generations& generations, Observer& observer, base::Clock& clock, std::stop_token stop)
      : options_(options),
        schedule_(schedule),
        batches_(batches),
        generations_(generations),
        observer_(observer),
        clock_(clock),
        stop_(std::move(stop)),
        former_(clock) {}

  absl::Status Run() {
    at::set_num_threads(options_.threads);
    const api::Training& training = options_.job.spec.training;
    HETERO_ASSIGN_OR_RETURN(RankModel opened, OpenRankModel(options_));
    layout_ = std::move(opened.layout);
    where_ = "opening the GPU";
    device_ = MakeCpuDevice();
    if (options_.gpu) {
      HETERO_ASSIGN_OR_RETURN(device_, OpenGpu());
    }
    opened.model->to(device_->place());
    state_.emplace(std::move(opened.model), training.optimizer);
    absl::Status status = RunGenerations();
    // Between steps every rank holds the state of the whole job, but for partitions.
    if (absl::IsCancelled(status) && checkpointer_ && state_->established && !partitioned()) {
      checkpointer_->Finish(state_->standing, GatherState(*state_, nullptr, model_name()),
                            observer_);
    }
    return status;
  }

 private:
  absl::Status RunGenerations() {
    absl::Status broken;
    while (true) {
      where_ = "waiting for the other ranks";
      absl::StatusOr<Generations::Generation> generation =
          generations_.Next(options_.generation, stop_);
      if (stop_.stop_requested()) return complete_ ? absl::OkStatus() : Stopped();
      if (absl::IsOutOfRange(generation.status()) && complete_) return absl::OkStatus();
      if (!generation.ok()) return broken.ok() ? generation.status() : broken;
      options_.generation = generation->number;
      broken_ = false;
      absl::Status status = RunGeneration(*generation);
      state_->Abort();
      if (!broken_) return status;
      if (stop_.stop_requested()) return complete_ ? absl::OkStatus() : Stopped();
      broken = std::move(status);
      log::Warning("generation broke", {{"generation", options_.generation},
                                        {"step", state_->standing.step},
                                        {"reason", broken.message()}});
      generations_.ReportBroken(options_.generation, std::string(broken.message()));
    }
  }

  // Sets broken_ when other ranks are lost or a newer generation has opened: this rank can go on in
  // the next one.
  absl::Status RunGeneration(const Generations::Generation& generation) {
    std::stop_source interrupt;
    const auto request = [&interrupt] { interrupt.request_stop(); };
    std::stop_callback on_stop(stop_, request);
    std::stop_callback on_over(generation.over, request);
    if (options_.world_size == 1) return Train(nullptr, interrupt.get_token(), [] {});
    try {
      where_ = "forming the process group";
      std::shared_ptr<GlooGroup> group = former_.Form({.rank = options_.rank,
                                                       .world_size = options_.world_size,
                                                       .partitions = PlaceOf(options_).partitions,
                                                       .generation = generation.number,
                                                       .host = generation.host,
                                                       .device = device_.get()},
                                                      generation.store, interrupt.get_token());
      if (group == nullptr) return Over();
      log::Info("formed the process group", {{"generation", generation.number},
                                             {"rank", options_.rank},
                                             {"ranks", options_.world_size}});
      where_ = "taking over the state";
      // The watchers live until the group is destroyed, which waits for its threads.
      const auto cut = group->Cutter();
      auto watcher = std::make_unique<StopWatcher>(
          stop_, partitioned() ? kPartitionedStopGrace : kStopGrace, clock_, cut);
      // All ranks have agreed to stop, and are busy with what they leave behind.
      const auto agreed = [&] {
        watcher.reset();
        watcher = std::make_unique<StopWatcher>(stop_, kGatherGrace, clock_, cut);
      };
      StopWatcher over_watcher(generation.over, {}, clock_, cut,
                               {.patience = kLeavingPatience, .give_up = EndProcess});
      const absl::Status status = TrainOver(std::move(group), interrupt.get_token(), agreed);
      return absl::IsAborted(status) ? Over() : status;
    } catch (const c10::DistError& error) {
      return Lost(error.what_without_backtrace());
    } catch (const c10::Error& error) {
      // LibTorch wraps some of Gloo's exceptions into its own.
      const std::string what = error.what_without_backtrace();
      const bool connection = absl::StrContains(what, "gloo") || absl::StrContains(what, "Gloo");
      if (connection || generation.over.stop_requested()) return Lost(what);
      return absl::InternalError(Located(what));
    } catch (const std::exception& error) {
      // Gloo's own exceptions: a connection to a peer broke or was cut.
      return Lost(absl::StrCat("lost another rank: ", error.what()));
    }
  }

  // Lets go of the group.
  absl::Status TrainOver(std::shared_ptr<GlooGroup> group, std::stop_token interrupt,
                         const std::function<void()>& agreed_to_stop) {
    try {
      return Train(group.get(), std::move(interrupt), agreed_to_stop);
    } catch (...) {
      // Collectives still queued would wait for peers that no longer take part.
      group->Cut();
      throw;
    }
  }

  absl::Status Train(GlooGroup* group, std::stop_token interrupt,
                     const std::function<void()>& agreed_to_stop) {
    Agreement agreement(group, options_.rank, options_.world_size);
    HETERO_RETURN_IF_ERROR(TakeState(group, agreement));
    if (options_.ceiling_probe_steps > 0 && options_.generation == 1 &&
        state_->standing.step == 0) {
      Probe(group, agreement, interrupt);
    }
    TrainingLoop loop(options_, schedule_,
                      {.state = *state_,
                       .group = group,
                       .layout = layout_.get(),
                       .agreement = agreement,
                       .batches = batches_,
                       .checkpointer = checkpointer_.get(),
                       .observer = observer_,
                       .phases = *phases_,
                       .device = *device_},
                      clock_, stop_, std::move(interrupt));
    absl::Status status;
    try {
      status = loop.Run();
    } catch (...) {
      where_ = loop.Where();
      throw;
    }
    where_ = loop.Where();
    if (absl::IsCancelled(status) && partitioned()) {
      agreed_to_stop();
      where_ = "gathering the last checkpoint";
      KeepState(group);
    }
    if (!status.ok()) return status;
    where_ = "leaving";
    KeepState(group);
    complete_ = true;
    // Nobody leaves before all are done: whoever had to begin anew would be alone. A stop that
    // comes so late changes nothing.
    const absl::Status last = agreement.Exchange({.error = SaveResult()}).verdict;
    return absl::IsCancelled(last) ? absl::OkStatus() : last;
  }

  // All ranks probe, or none. What fails in the stream says so again when the loop asks.
  void Probe(GlooGroup* group, Agreement& agreement, const std::stop_token& interrupt) {
    where_ = "probing the ceiling";
    absl::StatusOr<feed::BatchStream*> stream = batches_.From(schedule_.IndexOfStep(0));
    using Taken = absl::StatusOr<std::unique_ptr<feed::Batch>>;
    Taken first = stream.ok() ? (*stream)->Next(interrupt) : Taken(stream.status());
    const JobState job =
        agreement.Exchange({.stop = stop_.stop_requested(), .error = first.status()});
    const absl::StatusOr<double> ceiling =
        job.verdict.ok()
            ? ProbeCeiling(options_, schedule_, **first,
                           {.group = group, .agreement = agreement, .device = *device_}, clock_,
                           stop_, interrupt)
            : absl::StatusOr<double>(job.verdict);
    if (first.ok()) state_->held = *std::move(first);
    if (ceiling.ok()) {
      observer_.OnCeiling(*ceiling);
    } else {
      log::Warning("no ceiling was probed", {{"reason", ceiling.status().message()}});
    }
  }

  // The last checkpoint. Where the model is cut, rank 0 has the whole of it afterwards.
  void KeepState(const GlooGroup* group) {
    if (!checkpointer_ && !partitioned()) return;
    whole_ = GatherState(*state_, group, model_name());
    if (checkpointer_) checkpointer_->Finish(state_->standing, whole_, observer_);
  }

  absl::Status TakeState(GlooGroup* group, Agreement& agreement) {
    absl::Status opened;
    if (options_.rank == 0 && options_.job.spec.training.checkpoint && !checkpointer_) {
      absl::StatusOr<std::unique_ptr<Checkpointer>> checkpointer =
          Checkpointer::Open(options_, schedule_.training(), clock_, stop_);
      opened = checkpointer.status();
      if (checkpointer.ok()) checkpointer_ = *std::move(checkpointer);
    }
    const bool first_time = !state_->established && !phases_;
    HETERO_RETURN_IF_ERROR((StateSync{.group = group,
                                      .agreement = agreement,
                                      .rank = options_.rank,
                                      .layout = layout_.get(),
                                      .make_model = [this] { return OpenRankModel(options_); },
                                      .checkpointer = checkpointer_.get(),
                                      .failure = opened,
                                      .stop = stop_.stop_requested()}
                                .Run(*state_)));
    if (first_time) {
      observer_.OnResume(state_->standing.step, state_->standing.samples_consumed);
      phases_.emplace(clock_);
    }
    observer_.OnDigest(state_->standing.digest.high(), state_->standing.digest.low(),
                       state_->standing.samples_consumed);
    return absl::OkStatus();
  }

  // Buffers are rank 0's, as everywhere.
  absl::Status SaveResult() {
    if (options_.rank != 0 || options_.output_folder.empty()) return absl::OkStatus();
    where_ = "writing the trained weights";
    const std::string path = absl::StrCat(options_.output_folder, "/", kWeightsFile);
    absl::Status status;
    if (partitioned()) {
      for (const auto& [name, bytes] : whole_()) {
        if (name == kModelFile) status = base::WriteFileAtomically(path, bytes);
      }
    } else {
      status = SaveWeights(state_->model(), path);
    }
    if (status.ok()) log::Info("wrote the trained weights", {{"path", path}});
    return status;
  }

  bool partitioned() const { return layout_ != nullptr; }
  const std::string& model_name() const { return options_.job.spec.training.model.name; }
  std::string Located(const std::string& message) const {
    return absl::StrCat("rank ", options_.rank, ", ", where_, ": ", message);
  }
  absl::Status Lost(const std::string& message) {
    broken_ = true;
    return absl::UnavailableError(Located(message));
  }
  absl::Status Over() {
    broken_ = true;
    return absl::AbortedError(Located("a newer generation has opened"));
  }
  static absl::Status Stopped() { return absl::CancelledError("training was asked to stop"); }

  TrainerOptions options_;
  std::unique_ptr<Device> device_;
  const job::Schedule& schedule_;
  BatchSource& batches_;
  Generations& generations_;
  Observer& observer_;
  base::Clock& clock_;
  std::stop_token stop_;
  GroupFormer former_;
  std::string where_;
  std::shared_ptr<const PartitionLayout> layout_;  // null without partitions
  std::optional<TrainingState> state_;
  CheckpointWriter::Source whole_;  // of rank 0, at the end
  std::unique_ptr<Checkpointer> checkpointer_;
  std::optional<PhaseClock> phases_;  // from the first step on
  bool broken_ = false;               // the generation, not the training
  bool complete_ = false;             // every step is done and rank 0's checkpoint is written
};

}  // namespace

absl::Status RunTrainer(const TrainerOptions& options, const job::Schedule& schedule,
                        BatchSource& batches, Generations& generations, Observer& observer,
                        base::Clock& clock, std::stop_token stop) {
  HETERO_RETURN_IF_ERROR(CheckOptions(options));
  Trainer trainer(options, schedule, batches, generations, observer, clock, std::move(stop));
  try {
    return trainer.Run();
  } catch (const c10::Error& error) {
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace hetero::train
