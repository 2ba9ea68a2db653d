#include "runtime/train/trainer.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "runtime/train/gloo_group.h"
#include "runtime/train/loop.h"
#include "runtime/train/model.h"
#include "runtime/train/stop_watcher.h"

namespace hetero::train {
namespace {

// A step that all ranks can still finish together ends a job more cleanly than a cut does.
constexpr base::Duration kStopGrace = std::chrono::seconds(1);

absl::Status CheckOptions(const TrainerOptions& options) {
  const api::Training& training = options.job.spec.training;
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " of ", options.world_size, " does not exist"));
  }
  if (training.batch_size_per_worker < 1) {
    return absl::InvalidArgumentError("spec.training.batchSizePerWorker must be at least 1");
  }
  if (!training.model.torch_script.empty() || !training.model.plugin.empty() ||
      !training.model.weights.empty()) {
    return absl::UnimplementedError(
        "spec.training.model: torchScript, plugin and weights are not supported by this version; "
        "give a name");
  }
  if (training.precision != api::Precision::kFp32) {
    return absl::UnimplementedError(
        "spec.training.precision: BF16 is not supported by this version; use FP32");
  }
  if (training.loss.name != "CrossEntropy") {
    return absl::InvalidArgumentError(absl::StrCat("spec.training.loss.name: there is no loss \"",
                                                   training.loss.name, "\"; use CrossEntropy"));
  }
  return absl::OkStatus();
}

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const job::Schedule& schedule, feed::BatchStream& batches,
          KeyValueStore& store, Observer& observer, base::Clock& clock, std::stop_token stop)
      : options_(options),
        schedule_(schedule),
        batches_(batches),
        store_(store),
        observer_(observer),
        clock_(clock),
        stop_(std::move(stop)) {}

  absl::Status Run() {
    at::set_num_threads(options_.threads);
    where_ = "building the model";
    const api::Training& training = options_.job.spec.training;
    absl::StatusOr<std::shared_ptr<Model>> model = MakeModel(
        {.name = training.model.name, .classes = options_.classes, .input = options_.input},
        training.seed);
    if (!model.ok()) return model.status();
    if (options_.world_size == 1) return Train(**model, nullptr);

    where_ = "forming the process group";
    GlooGroup group({.rank = options_.rank,
                     .world_size = options_.world_size,
                     .generation = options_.generation,
                     .host = options_.host},
                    store_, clock_, stop_);
    log::Info("formed the process group",
              {{"rank", options_.rank}, {"ranks", options_.world_size}});
    StopWatcher watcher(stop_, kStopGrace, clock_, [&group] { group.Cut(); });
    return Train(**model, &group);
  }

  const std::string& where() const { return where_; }

 private:
  absl::Status Train(Model& model, GlooGroup* group) {
    TrainingLoop loop(options_, schedule_, model, group, batches_, observer_, clock_, stop_);
    try {
      return loop.Run();
    } catch (...) {
      where_ = loop.Where();
      // Collectives still queued would wait for peers that no longer take part.
      if (group != nullptr) group->Cut();
      throw;
    }
  }

  const TrainerOptions& options_;
  const job::Schedule& schedule_;
  feed::BatchStream& batches_;
  KeyValueStore& store_;
  Observer& observer_;
  base::Clock& clock_;
  std::stop_token stop_;
  std::string where_;
};

}  // namespace

absl::Status RunTrainer(const TrainerOptions& options, const job::Schedule& schedule,
                        feed::BatchStream& batches, KeyValueStore& store, Observer& observer,
                        base::Clock& clock, std::stop_token stop) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  Trainer trainer(options, schedule, batches, store, observer, clock, stop);
  const auto failure = [&](absl::StatusCode code, const std::string& message) {
    if (stop.stop_requested()) return absl::CancelledError("training was asked to stop");
    return absl::Status(code,
                        absl::StrCat("rank ", options.rank, ", ", trainer.where(), ": ", message));
  };
  try {
    return trainer.Run();
  } catch (const c10::DistError& error) {
    return failure(absl::StatusCode::kUnavailable, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return failure(absl::StatusCode::kInternal, error.what_without_backtrace());
  } catch (const std::exception& error) {
    // Gloo's own exceptions: a connection to a peer broke or was cut.
    return failure(absl::StatusCode::kUnavailable,
                   absl::StrCat("lost another rank: ", error.what()));
  }
}

}  // namespace hetero::train
