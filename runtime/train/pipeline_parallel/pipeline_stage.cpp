#include "runtime/train/pipeline_parallel/pipeline_stage.h"

#include <algorithm>
#include <utility>

#include "runtime/train/device/precision.h"
#include "runtime/train/models/loss.h"
#include "runtime/train/pipeline_parallel/one_forward_one_backward.h"

namespace hetero::train {
namespace {

constexpr int kCountTag = 0;
constexpr int kLabelTag = 1;
constexpr int kFirstMicrobatchTag = 16;
constexpr int64_t kEvaluationEnds = -1;

int ForwardTag(int64_t microbatch) {
  return kFirstMicrobatchTag + static_cast<int>(2 * microbatch);
}
int BackwardTag(int64_t microbatch) { return ForwardTag(microbatch) + 1; }

std::vector<int64_t> FirstSamples(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> first;
  int64_t next = 0;
  for (const int64_t size : sizes) {
    first.push_back(next);
    next += size;
  }
  return first;
}

}  // namespace

PipelineStage::PipelineStage(const Collaborators& collaborators)
    : model_(collaborators.model),
      layout_(collaborators.layout),
      place_(collaborators.group.place()),
      data_parallel_(collaborators.data_parallel),
      input_(collaborators.input),
      picture_(collaborators.picture),
      training_(collaborators.training),
      phases_(collaborators.phases),
      link_(collaborators.group) {}

double PipelineStage::ComputeGradients(const feed::Batch& batch, int64_t samples, double scale) {
  const int64_t microbatches =
      int64_t{training_.parallelism.microbatches} * training_.gradient_accumulation_steps;
  Step step{.batch = batch, .scale = scale, .empty = samples == 0};
  step.sizes = step.empty ? std::vector<int64_t>{1} : MicrobatchSizes(samples, microbatches);
  step.first = FirstSamples(step.sizes);
  step.in_flight.resize(step.sizes.size());
  if (!step.empty) {
    step.labels = ExchangeLabels(batch, samples);
  } else if (place_.last()) {
    step.labels = torch::zeros({1}, torch::device(input_.place()).dtype(torch::kInt64));
  }
  if (data_parallel_ != nullptr) data_parallel_->BeforeForward();
  for (const PipelineAction& action : OneForwardOneBackward(
           place_.stage, place_.partitions, static_cast<int64_t>(step.sizes.size()))) {
    switch (action.kind) {
      case PipelineAction::Kind::kForward:
        Forward(step, action.microbatch);
        break;
      case PipelineAction::Kind::kBackward:
        Backward(step, action.microbatch);
        break;
    }
  }
  link_.Drain();
  phases_.Charge(&Phases::all_reduce);
  return step.loss;
}

void PipelineStage::Forward(Step& step, int64_t microbatch) {
  const auto at = static_cast<size_t>(microbatch);
  InFlight& in_flight = step.in_flight[at];
  torch::Tensor input;
  if (place_.first() && step.empty) {
    input = torch::zeros({1, picture_.channels, picture_.height, picture_.width},
                         torch::device(input_.place()));
  } else {
    input = Input(step.batch, step.first[at], step.sizes[at], ForwardTag(microbatch));
  }
  if (!place_.first()) in_flight.input = input.requires_grad_(true);
  torch::Tensor output = Run(input);
  if (place_.last()) {
    const torch::Tensor labels = step.labels.narrow(0, step.first[at], step.sizes[at]);
    output = LossPerSample(training_.loss, output, labels).sum();
    if (step.empty) output = output * 0;
  } else {
    link_.Send(output, place_.stage + 1, ForwardTag(microbatch));
  }
  in_flight.output = std::move(output);
  phases_.Charge(&Phases::forward);
}

void PipelineStage::Backward(Step& step, int64_t microbatch) {
  InFlight in_flight = std::exchange(step.in_flight[static_cast<size_t>(microbatch)], {});
  const bool reduces =
      data_parallel_ != nullptr && microbatch + 1 == static_cast<int64_t>(step.sizes.size());
  torch::Tensor gradient;
  if (!place_.last()) {
    gradient = link_
                   .Receive(in_flight.output.sizes().vec(), torch::kFloat32, place_.stage + 1,
                            BackwardTag(microbatch))
                   .to(input_.place());
    phases_.Charge(&Phases::all_reduce);
  }
  if (reduces) data_parallel_->BeforeBackward(in_flight.output);
  if (place_.last()) {
    (in_flight.output * step.scale).backward();
    step.loss += in_flight.output.item<double>();
  } else {
    in_flight.output.backward(gradient);
  }
  if (reduces) {
    phases_.ChargeUntil(&Phases::backward, data_parallel_->gradients_ready());
    phases_.Charge(&Phases::all_reduce);
  }
  if (!place_.first()) {
    link_.Send(in_flight.input.grad(), place_.stage - 1, BackwardTag(microbatch));
  }
  phases_.Charge(&Phases::backward);
}

// From the first stage to the last, which is another; undefined on the others.
torch::Tensor PipelineStage::ExchangeLabels(const feed::Batch& batch, int64_t samples) {
  if (place_.first()) {
    link_.Send(input_.Labels(batch, 0, samples), place_.partitions - 1, kLabelTag);
  }
  if (!place_.last()) return {};
  return link_.Receive({samples}, torch::kInt64, 0, kLabelTag).to(input_.place());
}

torch::Tensor PipelineStage::Input(const feed::Batch& batch, int64_t first, int64_t count,
                                   int tag) {
  if (place_.first()) {
    const torch::Tensor images = input_.Images(batch, first, count);
    phases_.Charge(&Phases::host_to_device);
    return images;
  }
  std::vector<int64_t> shape = {count};
  shape.insert(shape.end(), layout_.activation.begin(), layout_.activation.end());
  torch::Tensor input =
      link_.Receive(shape, torch::kFloat32, place_.stage - 1, tag).to(input_.place());
  phases_.Charge(&Phases::all_reduce);
  return input;
}

torch::Tensor PipelineStage::Run(const torch::Tensor& input) {
  const PrecisionScope scope(training_.precision, input_.place());
  return model_.forward(input).to(torch::kFloat32);
}

RankState PipelineStage::Evaluate(int64_t batches, feed::BatchStream& stream, Observer& observer,
                                  std::stop_token stop) {
  torch::NoGradGuard no_grad;
  model_.eval();
  RankState sums;
  for (int64_t i = 0; i < batches; ++i) {
    std::unique_ptr<feed::Batch> batch = std::make_unique<feed::Batch>();
    const int64_t samples = NextEvaluationBatch(stream, stop, batch, sums);
    if (samples == kEvaluationEnds) break;
    if (samples == 0) continue;
    if (place_.first()) observer.OnBatch(*batch);
    EvaluateBatch(*batch, samples, sums);
  }
  link_.Drain();
  model_.train();
  phases_.Charge(&Phases::evaluation);
  return sums;
}

// The first stage decides whether there is a batch, and says so down the pipeline; what goes wrong
// on the others is told when the evaluation is over.
int64_t PipelineStage::NextEvaluationBatch(feed::BatchStream& stream, std::stop_token stop,
                                           std::unique_ptr<feed::Batch>& batch, RankState& sums) {
  phases_.Charge(&Phases::evaluation);
  if (!sums.stop && sums.error.ok()) {
    absl::StatusOr<std::unique_ptr<feed::Batch>> next = stream.Next(stop);
    sums.stop = stop.stop_requested();
    if (!sums.stop) sums.error = next.status();
    if (next.ok()) batch = *std::move(next);
  }
  phases_.Charge(&Phases::wait);
  int64_t samples = 0;
  if (place_.first()) {
    const bool goes_on = !sums.stop && sums.error.ok();
    samples = goes_on ? batch->count() : kEvaluationEnds;
  } else {
    samples = link_.ReceiveNumber(place_.stage - 1, kCountTag);
  }
  if (!place_.last()) link_.SendNumber(samples, place_.stage + 1, kCountTag);
  return samples;
}

void PipelineStage::EvaluateBatch(const feed::Batch& batch, int64_t samples, RankState& sums) {
  const std::vector<int64_t> sizes = MicrobatchSizes(samples, training_.parallelism.microbatches);
  const std::vector<int64_t> first = FirstSamples(sizes);
  const torch::Tensor labels = ExchangeLabels(batch, samples);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int tag = ForwardTag(static_cast<int64_t>(i));
    const torch::Tensor output = Run(Input(batch, first[i], sizes[i], tag));
    if (!place_.last()) {
      link_.Send(output, place_.stage + 1, tag);
      // No more of them wait in memory than in training.
      link_.Drain(static_cast<size_t>(place_.partitions));
      continue;
    }
    const torch::Tensor own = labels.narrow(0, first[i], sizes[i]);
    sums.loss += LossPerSample(training_.loss, output, own).sum(torch::kFloat64).item<double>();
    sums.correct += output.argmax(1).eq(own).sum().item<int64_t>();
    sums.loss_samples += sizes[i];
  }
}

}  // namespace hetero::train
