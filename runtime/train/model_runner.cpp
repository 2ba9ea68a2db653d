#include "runtime/train/model_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/train/device/precision.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/models/loss.h"
#include "runtime/train/rank_model.h"

namespace hetero::train {
namespace {

// Of the built-in models every parameter takes part in every step.
bool MayLeaveUnused(const api::Model& model) {
  return !model.torch_script.empty() || !model.plugin.empty();
}

std::unique_ptr<DataParallel> MakeDataParallel(Model& model, Optimizer& optimizer, GlooGroup* group,
                                               const api::Model& spec, base::Clock& clock,
                                               Device& device) {
  optimizer.DropGradients();  // they may lie in the buckets of a group that is gone
  if (group == nullptr || !group->gradients()) return nullptr;
  return std::make_unique<DataParallel>(model, *group, clock, MayLeaveUnused(spec),
                                        [&device] { device.Note(Device::Moment::kGradients); });
}

}  // namespace

ModelRunner::ModelRunner(const TrainerOptions& options, const Collaborators& collaborators,
                         base::Clock& clock)
    : training_(options.job.spec.training),
      picture_(options.input),
      place_(PlaceOf(options)),
      model_(collaborators.model),
      optimizer_(collaborators.optimizer),
      agreement_(collaborators.agreement),
      phases_(collaborators.phases),
      clock_(clock),
      device_(collaborators.device),
      input_(options.conversion, options.input.channels, model_.channels_last(),
             collaborators.device),
      data_parallel_(MakeDataParallel(model_, optimizer_, collaborators.group, training_.model,
                                      clock, device_)) {
  if (!place_.partitioned()) return;
  stage_ = std::make_unique<PipelineStage>(
      PipelineStage::Collaborators{.model = model_,
                                   .layout = *collaborators.layout,
                                   .group = *collaborators.group,
                                   .data_parallel = data_parallel_.get(),
                                   .input = input_,
                                   .picture = picture_,
                                   .training = training_,
                                   .phases = phases_});
}

double ModelRunner::ComputeGradients(const feed::Batch& batch, int64_t samples, double scale) {
  if (!data_parallel_) {
    optimizer_.DropGradients();
  } else if (stage_) {
    optimizer_.ZeroGradients();
  } else {
    optimizer_.DropGradients(Optimizer::Keeper::kBuckets);
  }
  phases_.Charge(&Phases::optimizer);
  return stage_ ? stage_->ComputeGradients(batch, samples, scale) : AddGradients(batch, scale);
}

double ModelRunner::AddGradients(const feed::Batch& batch, double scale) {
  const int64_t count = batch.count();
  const int64_t at_once = training_.batch_size_per_worker;
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

ModelRunner::Piece ModelRunner::MakePiece(const feed::Batch& batch, int64_t first,
                                          int64_t count) const {
  // A rank without a sample takes part with an empty picture that it does not own. Batch norm needs
  // two samples: the only one stands twice and counts half each time, which gives the loss and the
  // gradient of one.
  const int64_t rows =
      model_.has_batch_norm() ? std::max<int64_t>(count, 2) : std::max<int64_t>(count, 1);
  const api::ImageShape& shape = picture_;
  const torch::TensorOptions here = torch::device(input_.place());
  Piece piece;
  piece.padded = rows != count;
  if (count == 0) {
    piece.images = torch::zeros({rows, shape.channels, shape.height, shape.width}, here);
    piece.labels = torch::zeros({rows}, here.dtype(torch::kInt64));
    piece.ownership = torch::zeros({rows}, here);
    return piece;
  }
  piece.images = input_.Images(batch, first, count);
  piece.labels = input_.Labels(batch, first, count);
  if (piece.padded) {
    piece.images = piece.images.repeat({rows, 1, 1, 1});
    piece.labels = piece.labels.repeat({rows});
  }
  piece.ownership = torch::full({rows}, static_cast<float>(count) / static_cast<float>(rows), here);
  return piece;
}

// Adds the gradients of `piece`, its losses times `scale`, and returns the sum of its losses.
double ModelRunner::RunPiece(const Piece& piece, double scale, bool reduce) {
  std::vector<torch::Tensor> saved;
  if (piece.padded) {
    for (const torch::Tensor& buffer : model_.buffers()) saved.push_back(buffer.clone());
  }
  reduce = reduce && data_parallel_ != nullptr;
  device_.Note(Device::Moment::kBegin);
  if (reduce) data_parallel_->BeforeForward();
  torch::Tensor logits;
  {
    const PrecisionScope scope(training_.precision, input_.place());
    logits = model_.forward(piece.images).to(torch::kFloat32);
  }
  const torch::Tensor loss =
      (LossPerSample(training_.loss, logits, piece.labels) * piece.ownership).sum();
  if (reduce) data_parallel_->BeforeBackward(loss);
  device_.Note(Device::Moment::kForward);
  const base::Instant after_forward = clock_.Now();
  (loss * scale).backward();
  if (piece.padded) {
    torch::NoGradGuard no_grad;
    const std::vector<torch::Tensor> buffers = model_.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(saved[i]);
  }
  const auto sum = loss.item<double>();  // a GPU has done all of it now
  ChargePiece(after_forward, reduce);
  return sum;
}

// Forward, backward, and what the reduction of gradients took beyond it.
void ModelRunner::ChargePiece(base::Instant after_forward, bool reduce) {
  const auto moment = [this, now = clock_.Now()](Device::Moment which, base::Instant on_host) {
    const std::optional<double> ago = device_.SecondsSince(which);
    return ago ? now - base::FromSeconds(*ago) : on_host;
  };
  // What a GPU still had to do of the step before.
  phases_.ChargeUntil(&Phases::optimizer, moment(Device::Moment::kBegin, base::Instant{}));
  phases_.ChargeUntil(&Phases::forward, moment(Device::Moment::kForward, after_forward));
  if (!reduce) return phases_.Charge(&Phases::backward);
  phases_.ChargeUntil(&Phases::backward,
                      moment(Device::Moment::kGradients, data_parallel_->gradients_ready()));
  phases_.Charge(&Phases::all_reduce);
}

double ModelRunner::GradientNorm() {
  const double own = optimizer_.GradientNorm();
  if (!place_.partitioned()) return own;
  const double sum = agreement_.Sum(own * own);
  phases_.Charge(&Phases::all_reduce);
  return std::sqrt(sum / place_.pipelines);
}

void ModelRunner::BroadcastBuffers() {
  if (data_parallel_) data_parallel_->BroadcastBuffers();
}

RankState ModelRunner::Evaluate(int64_t batches, feed::BatchStream& stream, Observer& observer,
                                std::stop_token stop) {
  return stage_ ? stage_->Evaluate(batches, stream, observer, std::move(stop))
                : EvaluateShare(model_, input_, training_.loss, training_.precision, batches,
                                stream, observer, phases_, std::move(stop));
}

}  // namespace hetero::train
