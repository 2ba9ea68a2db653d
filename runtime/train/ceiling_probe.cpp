#include "runtime/train/ceiling_probe.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "runtime/train/checkpoint/training_state.h"
#include "runtime/train/loop.h"
#include "runtime/train/rank_model.h"

namespace hetero::train {
namespace {

constexpr int64_t kWarmUpSteps = 3;  // memory is allocated, gradient buckets are arranged

// `first` as the batch of every step.
class SameBatch : public BatchSource, public feed::BatchStream {
 public:
  SameBatch(const feed::Batch& first, const job::Schedule& schedule, int32_t rank)
      : first_(first), schedule_(schedule), rank_(rank) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override {
    if (stop.stop_requested()) return absl::CancelledError("stopped during the ceiling probe");
    auto batch = std::make_unique<feed::Batch>();
    batch->ticket = first_.ticket;
    batch->ticket.epoch = 0;
    batch->ticket.step = step_;
    batch->ticket.slots = schedule_.training().Share(step_, rank_);
    ++step_;
    batch->shape = first_.shape;
    batch->images = feed::Slab(first_.images.size());
    std::memcpy(batch->images.data(), first_.images.data(),
                static_cast<size_t>(first_.images.size()));
    batch->labels = first_.labels;
    batch->sample_ids = first_.sample_ids;
    batch->crcs = first_.crcs;
    return batch;
  }
  absl::StatusOr<feed::BatchStream*> From(int64_t) override { return this; }
  feed::StreamStats stats() const override { return {}; }

 private:
  const feed::Batch& first_;
  const job::Schedule& schedule_;
  int32_t rank_;
  int64_t step_ = 0;
};

// Keeps what steps took, and tells nobody.
class StepTimes : public Observer {
 public:
  void OnStep(const StepRecord& record) override {
    if (record.step <= kWarmUpSteps) return;
    seconds_.push_back(record.seconds - record.phases.wait);
    samples_ = record.samples;
  }
  void OnEvaluation(const EvaluationRecord&) override {}
  void OnBatch(const feed::Batch&) override {}
  void OnDigest(uint64_t, uint64_t, int64_t) override {}
  void OnPhases(const Phases&, double) override {}
  void OnEpochEnd(int64_t, uint32_t) override {}
  void OnSkippedStep(int64_t) override {}
  void OnResume(int64_t, int64_t) override {}
  void OnCheckpoint(const std::string&, int64_t) override {}
  void OnCheckpointProblem(const std::string&) override {}
  void OnCeiling(double) override {}

  double SamplesPerSecond() {
    if (seconds_.empty()) return 0;
    const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
    std::nth_element(seconds_.begin(), middle, seconds_.end());
    return *middle > 0 ? static_cast<double>(samples_) / *middle : 0;
  }

 private:
  std::vector<double> seconds_;
  int64_t samples_ = 0;
};

// The arguments of the real training, but for a rate of zero: repeating one batch must not diverge.
TrainerOptions ProbeOptions(const TrainerOptions& options) {
  TrainerOptions probe = options;
  api::Training& training = probe.job.spec.training;
  training.optimizer.learning_rate = 0;
  training.schedule = {};
  training.evaluation.reset();
  training.stop_on_non_finite = api::NonFiniteAction::kSkip;
  return probe;
}

job::Schedule ProbeSchedule(const TrainerOptions& options, int64_t global_batch, int64_t steps) {
  const api::Training& training = options.job.spec.training;
  return job::Schedule({.training = {.samples = global_batch * steps,
                                     .batch_size_per_worker = training.batch_size_per_worker,
                                     .ranks = options.world_size,
                                     .partitions = training.parallelism.partitions,
                                     .accumulation = training.gradient_accumulation_steps,
                                     .last_batch = training.last_batch,
                                     .max_steps = steps}},
                       options.rank);
}

}  // namespace

absl::StatusOr<double> ProbeCeiling(const TrainerOptions& options, const job::Schedule& schedule,
                                    const feed::Batch& first, const ProbePeers& peers,
                                    base::Clock& clock, Interrupts interrupts) {
  const int64_t global_batch = schedule.training().global_batch();
  if (schedule.training().total_steps() == 0 ||
      schedule.training().At(0).slots.count != global_batch) {
    return absl::FailedPreconditionError(
        "the ceiling probe needs a dataset of at least one full step");
  }
  const TrainerOptions probe = ProbeOptions(options);
  const job::Schedule steps =
      ProbeSchedule(probe, global_batch, kWarmUpSteps + options.ceiling_probe_steps);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor random_state = generator.get_state();
  const api::Training& training = probe.job.spec.training;
  HETERO_ASSIGN_OR_RETURN(const RankModel opened, OpenRankModel(probe));
  opened.model->to(peers.device.place());
  TrainingState state(opened.model, training.optimizer);
  SameBatch batches(first, steps, options.rank);
  StepTimes times;
  PhaseClock phases(clock);
  RankComparison::Schedule comparisons(clock);
  TrainingLoop loop(probe, steps,
                    {.state = state,
                     .group = peers.group,
                     .layout = opened.layout.get(),
                     .agreement = peers.agreement,
                     .comparisons = comparisons,
                     .batches = batches,
                     .checkpointer = nullptr,
                     .observer = times,
                     .phases = phases,
                     .device = peers.device},
                    clock, std::move(interrupts));
  if (absl::Status status = loop.Run(); !status.ok()) return status;
  generator.set_state(random_state);
  return times.SamplesPerSecond();
}

}  // namespace hetero::train
