// A small model with cut points, for the tests of training in partitions: flattened pictures
// through residual layers.
#include "hetero/model_plugin.h"

namespace {

namespace nn = torch::nn;

constexpr int64_t kWidth = 24;
constexpr int64_t kLayers = 4;

class CutNet : public hetero::train::Model {
 public:
  CutNet(int64_t inputs, int64_t classes) {
    embed_ = register_module("embed", nn::Linear(inputs, kWidth));
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      layers_.push_back(
          register_module(name, nn::Sequential(nn::LayerNorm(nn::LayerNormOptions({kWidth})),
                                               nn::Linear(kWidth, kWidth), nn::GELU())));
    }
    head_ = register_module("head", nn::Linear(kWidth, classes));
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = embed_(images.flatten(1));
    for (nn::Sequential& layer : layers_) x = x + layer->forward(x);
    return head_(x);
  }

  std::vector<hetero::train::ModelStage> stages() override {
    std::vector<hetero::train::ModelStage> stages;
    stages.push_back(
        {[this](torch::Tensor x) { return embed_(x.flatten(1)); }, embed_->parameters()});
    for (nn::Sequential layer : layers_) {
      stages.push_back({[layer](torch::Tensor x) mutable { return x + layer->forward(x); },
                        layer->parameters()});
    }
    stages.push_back({[this](torch::Tensor x) { return head_(x); }, head_->parameters()});
    return stages;
  }

 private:
  nn::Linear embed_{nullptr}, head_{nullptr};
  std::vector<nn::Sequential> layers_;
};

std::shared_ptr<hetero::train::Model> Make(const hetero::train::PluginRequest& request) {
  const int64_t inputs = int64_t{request.height} * request.width * request.channels;
  return std::make_shared<CutNet>(inputs, request.classes);
}

}  // namespace

HETERO_MODEL_PLUGIN({"cut_net"}, Make)
