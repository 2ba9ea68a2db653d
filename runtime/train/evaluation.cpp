#include "runtime/train/evaluation.h"

#include <memory>
#include <vector>

#include "runtime/train/device/precision.h"
#include "runtime/train/models/loss.h"

namespace hetero::train {
namespace {

void AddBatch(Model& model, const InputConverter& input, const api::Loss& loss,
              api::Precision precision, const feed::Batch& batch, RankState& sums) {
  const torch::Tensor images = input.Images(batch, 0, batch.count());
  const torch::Tensor labels = input.Labels(batch, 0, batch.count());
  const PrecisionScope scope(precision, input.place());
  const torch::Tensor logits = model.forward(images).to(torch::kFloat32);
  sums.loss += LossPerSample(loss, logits, labels).sum(torch::kFloat64).item<double>();
  sums.loss_samples += batch.count();
  sums.correct += logits.argmax(1).eq(labels).sum().item<int64_t>();
}

// Puts a model into evaluation mode, and at the end each layer into the mode it had.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model) {
    for (const auto& layer : Layers()) modes_.push_back(layer->is_training());
    model.eval();
  }
  ~EvaluationMode() {
    model_.train();
    // A module comes before those below it, which it sets too.
    const std::vector<std::shared_ptr<torch::nn::Module>> layers = Layers();
    for (size_t i = 0; i < layers.size(); ++i) layers[i]->train(modes_[i]);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> Layers() const {
    return model_.modules(/*include_self=*/false);
  }

  Model& model_;
  std::vector<bool> modes_;
};

}  // namespace

RankState EvaluateShare(Model& model, const InputConverter& input, const api::Loss& loss,
                        api::Precision precision, int64_t batches, feed::BatchStream& stream,
                        Observer& observer, PhaseClock& phases, std::stop_token stop) {
  torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  RankState sums;
  for (int64_t i = 0; i < batches; ++i) {
    phases.Charge(&Phases::evaluation);
    absl::StatusOr<std::unique_ptr<feed::Batch>> batch = stream.Next(stop);
    phases.Charge(&Phases::wait);
    sums.stop = stop.stop_requested();
    if (sums.stop) break;
    sums.error = batch.status();
    if (!sums.error.ok()) break;
    if ((*batch)->count() == 0) continue;
    observer.OnBatch(**batch);
    AddBatch(model, input, loss, precision, **batch, sums);
  }
  phases.Charge(&Phases::evaluation);
  return sums;
}

}  // namespace hetero::train
