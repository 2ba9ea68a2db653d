#include "runtime/train/trainer.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/process_group/gloo_group.h"
#include "runtime/train/process_group/group_former.h"
#include "runtime/train/rank_model.h"
#include "runtime/train/rank_training.h"
#include "runtime/train/stop_watcher.h"

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

// Takes one rank from generation to generation until its training is over.
class Trainer {
 public:
  Trainer(const TrainerOptions& options, const job::Schedule& schedule, BatchSource& batches,
          Generations& generations, Observer& observer, base::Clock& clock, std::stop_token stop)
      : options_(options),
        generations_(generations),
        clock_(clock),
        stop_(std::move(stop)),
        former_(clock),
        training_(options_, {.schedule = schedule,
                             .batches = batches,
                             .observer = observer,
                             .clock = clock,
                             .stop = stop_}) {}

  absl::Status Run() {
    HETERO_RETURN_IF_ERROR(training_.Open());
    absl::Status status = RunGenerations();
    if (absl::IsCancelled(status)) training_.KeepStoppedState();
    return status;
  }

 private:
  absl::Status RunGenerations() {
    absl::Status broken;
    while (true) {
      training_.set_activity("waiting for the other ranks");
      absl::StatusOr<Generations::Generation> generation =
          generations_.Next(options_.generation, stop_);
      if (stop_.stop_requested()) return training_.complete() ? absl::OkStatus() : Stopped();
      if (absl::IsOutOfRange(generation.status()) && training_.complete()) return absl::OkStatus();
      if (!generation.ok()) return broken.ok() ? generation.status() : broken;
      options_.generation = generation->number;
      broken_ = false;
      absl::Status status = RunGeneration(*generation);
      training_.Abort();
      if (!broken_) return status;
      if (stop_.stop_requested()) return training_.complete() ? absl::OkStatus() : Stopped();
      broken = std::move(status);
      log::Warning("generation broke", {{"generation", options_.generation},
                                        {"step", training_.steps_done()},
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
    if (options_.world_size == 1) return training_.Run(nullptr, interrupt.get_token(), [] {});
    try {
      const absl::Status status = FormAndTrain(generation, interrupt.get_token());
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

  // kAborted when the generation was over first.
  absl::Status FormAndTrain(const Generations::Generation& generation,
                            const std::stop_token& interrupt) {
    training_.set_activity("forming the process group");
    std::shared_ptr<GlooGroup> group = former_.Form({.rank = options_.rank,
                                                     .world_size = options_.world_size,
                                                     .partitions = PlaceOf(options_).partitions,
                                                     .generation = generation.number,
                                                     .host = generation.host,
                                                     .device = &training_.device()},
                                                    generation.store, interrupt);
    if (group == nullptr) return absl::AbortedError("interrupted");
    log::Info("formed the process group", {{"generation", generation.number},
                                           {"rank", options_.rank},
                                           {"ranks", options_.world_size}});
    // The watchers live until the group is destroyed, which waits for its threads.
    const auto cut = group->Cutter();
    auto watcher = std::make_unique<StopWatcher>(
        stop_, training_.partitioned() ? kPartitionedStopGrace : kStopGrace, clock_, cut);
    // All ranks have agreed to stop, and are busy with what they leave behind.
    const auto agreed = [&] {
      watcher.reset();
      watcher = std::make_unique<StopWatcher>(stop_, kGatherGrace, clock_, cut);
    };
    StopWatcher over_watcher(generation.over, {}, clock_, cut,
                             {.patience = kLeavingPatience, .give_up = EndProcess});
    return TrainOver(std::move(group), interrupt, agreed);
  }

  // Lets go of the group.
  absl::Status TrainOver(std::shared_ptr<GlooGroup> group, std::stop_token interrupt,
                         const std::function<void()>& agreed_to_stop) {
    try {
      return training_.Run(group.get(), std::move(interrupt), agreed_to_stop);
    } catch (...) {
      // Collectives still queued would wait for peers that no longer take part.
      group->Cut();
      throw;
    }
  }

  std::string Located(const std::string& message) const {
    return absl::StrCat("rank ", options_.rank, ", ", training_.activity(), ": ", message);
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
  Generations& generations_;
  base::Clock& clock_;
  std::stop_token stop_;
  GroupFormer former_;
  RankTraining training_;
  bool broken_ = false;  // the generation, not the training
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
