#include "runtime/train/trainer.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/train/interrupts.h"
#include "runtime/train/leave_wish.h"
#include "runtime/train/process_group/exceptions.h"
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
  if (training.script) {
    return absl::InvalidArgumentError(
        "spec.training.script: hetero-trainer trains models, not scripts; start `hetero-runtime "
        "agent` in its place");
  }
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

constexpr size_t kMostOfMessage = 3072;  // bytes; a script's stack ends with what it raised
constexpr char kMemoryRemedy[] =
    "Lower spec.training.batchSizePerWorker (gradientAccumulationSteps keeps the samples per "
    "step), "
    "or give the role more memory";

absl::string_view Ending(absl::string_view message) {
  return message.substr(message.size() - std::min(message.size(), kMostOfMessage));
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
          Generations& generations, Observer& observer, base::Clock& clock,
          const StopTokens& requests)
      : options_(options),
        generations_(generations),
        clock_(clock),
        stop_on_request_(requests.stop, [this] { stop_.request_stop(); }),
        // There are no others who could go on.
        stop_on_leave_(options.world_size == 1 ? requests.leave : std::stop_token(),
                       [this] { stop_.request_stop(); }),
        leave_(options.world_size == 1 ? std::stop_token() : requests.leave, clock),
        save_(requests.save),
        former_(clock),
        training_(
            options_,
            {.schedule = schedule, .batches = batches, .observer = observer, .clock = clock}) {}

  absl::Status Run() {
    absl::Status status;
    try {
      status = training_.Open();
      if (status.ok()) status = RunGenerations();
    } catch (const std::exception& error) {
      status = Failed(error);
    }
    if (absl::IsCancelled(status) || absl::IsAborted(status)) KeepStoppedState();
    return status;
  }

 private:
  // How a generation ended here.
  enum class Outcome {
    kEnded,   // the training, with the status
    kBroken,  // other ranks are lost, or a newer generation has opened: on in the next one
    kParted,  // ranks have left in order, perhaps this one: likewise
  };

  // Without it the end is still what it was.
  void KeepStoppedState() {
    try {
      training_.KeepStoppedState();
    } catch (const std::exception& error) {
      log::Warning("no checkpoint of the state in which training stopped",
                   {{"reason", Failed(error).message()}});
    }
  }

  absl::Status RunGenerations() {
    absl::Status broken;
    while (true) {
      training_.set_activity("waiting for the other ranks");
      absl::StatusOr<Generations::Generation> generation =
          generations_.Next(options_.generation, stop_.get_token());
      if (stop_.stop_requested()) return training_.complete() ? absl::OkStatus() : Stopped();
      if (absl::IsOutOfRange(generation.status()) && training_.complete()) return absl::OkStatus();
      if (leave_.asked()) return training_.delivered() ? absl::OkStatus() : Left();
      if (!generation.ok()) return broken.ok() ? generation.status() : broken;
      options_.generation = generation->number;
      absl::Status status;
      const Outcome outcome = RunGeneration(*generation, status);
      training_.Abort();
      if (outcome == Outcome::kEnded) return status;
      if (stop_.stop_requested()) return training_.complete() ? absl::OkStatus() : Stopped();
      if (leave_.asked()) return training_.delivered() ? absl::OkStatus() : Left();
      if (outcome == Outcome::kParted) {
        log::Info("ranks have left; their places are taken anew",
                  {{"generation", options_.generation},
                   {"step", training_.steps_done()},
                   {"reason", status.message()}});
        continue;
      }
      broken = std::move(status);
      log::Warning("generation broke", {{"generation", options_.generation},
                                        {"step", training_.steps_done()},
                                        {"reason", broken.message()}});
      generations_.ReportBroken(options_.generation, std::string(broken.message()));
    }
  }

  Outcome RunGeneration(const Generations::Generation& generation, absl::Status& status) {
    std::stop_source wait;
    const auto end_waits = [&wait] { wait.request_stop(); };
    std::stop_callback on_stop(stop_.get_token(), end_waits);
    std::stop_callback on_over(generation.over, end_waits);
    StopWatcher on_insisting(leave_.token(), LeaveWish::kTogether, clock_, end_waits);
    const Interrupts interrupts{.stop = stop_.get_token(),
                                .over = generation.over,
                                .wait = wait.get_token(),
                                .leave = &leave_,
                                .save = save_};
    try {
      status = options_.world_size == 1 ? Train(nullptr, interrupts, [] {})
                                        : FormAndTrain(generation, interrupts);
    } catch (const std::exception& error) {
      // While the group is taken down, as a stop does too, LibTorch may say anything.
      const bool lost =
          CameFromCollective(error) || generation.over.stop_requested() || stop_.stop_requested();
      status = lost ? Lost(error) : Failed(error);
      return lost ? Outcome::kBroken : Outcome::kEnded;
    }
    if (training_.parted()) return Outcome::kParted;
    if (!absl::IsAborted(status)) return Outcome::kEnded;
    status = absl::AbortedError(Located("a newer generation has opened"));
    return Outcome::kBroken;
  }

  // kAborted when the generation was over first, or ranks leave.
  absl::Status FormAndTrain(const Generations::Generation& generation,
                            const Interrupts& interrupts) {
    training_.set_activity("forming the process group");
    // Whoever is to leave does not begin.
    std::stop_source give_up;
    const auto request = [&give_up] { give_up.request_stop(); };
    std::stop_callback on_wait(interrupts.wait, request);
    std::stop_callback on_leave(leave_.token(), request);
    std::shared_ptr<GlooGroup> group = Collectively([&] {
      return former_.Form({.rank = options_.rank,
                           .world_size = options_.world_size,
                           .partitions = PlaceOf(options_).partitions,
                           .generation = generation.number,
                           .host = generation.host,
                           .device = &training_.device()},
                          generation.store, give_up.get_token());
    });
    if (group == nullptr) return absl::AbortedError("interrupted");
    log::Info("formed the process group", {{"generation", generation.number},
                                           {"rank", options_.rank},
                                           {"ranks", options_.world_size}});
    // The watchers live until the group is destroyed, which waits for its threads.
    const auto cut = group->Cutter();
    auto watcher = std::make_unique<StopWatcher>(
        interrupts.stop, training_.partitioned() ? kPartitionedStopGrace : kStopGrace, clock_, cut);
    // All ranks have agreed to stop, and are busy with what they leave behind.
    const auto agreed = [&] {
      watcher.reset();
      watcher = std::make_unique<StopWatcher>(interrupts.stop, kGatherGrace, clock_, cut);
    };
    StopWatcher over_watcher(generation.over, {}, clock_, cut,
                             {.patience = kLeavingPatience, .give_up = EndProcess});
    return Train(std::move(group), interrupts, agreed);
  }

  // Lets go of `group`, which is null for a job of one rank.
  absl::Status Train(std::shared_ptr<GlooGroup> group, const Interrupts& interrupts,
                     const std::function<void()>& agreed_to_stop) {
    absl::Status status;
    try {
      status = training_.Run(group.get(), interrupts, agreed_to_stop);
    } catch (...) {
      // Collectives still queued would wait for peers that no longer take part.
      if (group != nullptr) group->Cut();
      throw;
    }
    if (!absl::IsAborted(status) || training_.parted() || interrupts.over.stop_requested()) {
      return status;
    }
    // Nothing has ended the generation: an input failed with this code, and would fail again.
    return absl::InternalError(status.message());
  }

  std::string Located(absl::string_view message) const {
    return absl::StrCat("rank ", options_.rank, ", ", training_.activity(), ": ", message);
  }
  absl::Status Lost(const std::exception& error) const {
    return absl::UnavailableError(
        Located(absl::StrCat("lost another rank: ", Ending(MessageOf(error)))));
  }
  // Of the model, the loss, the optimiser or this program: it would come again.
  absl::Status Failed(const std::exception& error) const {
    const std::string message(Ending(MessageOf(error)));
    if (!IsOutOfMemory(error)) return absl::InternalError(Located(message));
    return absl::ResourceExhaustedError(
        Located(absl::StrCat("out of memory: ", message, ". ", kMemoryRemedy)));
  }
  absl::Status Left() const {
    return absl::AbortedError(absl::StrCat("left after step ", training_.steps_done(),
                                           ", as it was asked to; the other ranks go on"));
  }
  static absl::Status Stopped() { return absl::CancelledError("training was asked to stop"); }

  TrainerOptions options_;
  Generations& generations_;
  base::Clock& clock_;
  std::stop_source stop_;
  const std::stop_callback<std::function<void()>> stop_on_request_;
  const std::stop_callback<std::function<void()>> stop_on_leave_;
  const LeaveWish leave_;
  std::atomic<bool>* const save_;
  GroupFormer former_;
  RankTraining training_;
};

}  // namespace

absl::Status RunTrainer(const TrainerOptions& options, const job::Schedule& schedule,
                        BatchSource& batches, Generations& generations, Observer& observer,
                        base::Clock& clock, const StopTokens& requests) {
  HETERO_RETURN_IF_ERROR(CheckOptions(options));
  return Trainer(options, schedule, batches, generations, observer, clock, requests).Run();
}

}  // namespace hetero::train
