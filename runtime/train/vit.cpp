#include "runtime/train/vit.h"

#include <cmath>

namespace hetero::train {
namespace {

namespace nn = torch::nn;

constexpr int64_t kPatch = 16;
constexpr int64_t kLayers = 12;
constexpr int64_t kHeads = 12;
constexpr int64_t kWidth = 768;
constexpr int64_t kMlpWidth = 3072;

nn::LayerNorm MakeLayerNorm() { return nn::LayerNorm(nn::LayerNormOptions({kWidth}).eps(1e-6)); }

// The parameters of torch.nn.MultiheadAttention: one input projection for query, key and value.
class SelfAttentionImpl : public nn::Module {
 public:
  SelfAttentionImpl() {
    in_proj_weight_ = register_parameter("in_proj_weight", torch::empty({3 * kWidth, kWidth}));
    in_proj_bias_ = register_parameter("in_proj_bias", torch::zeros({3 * kWidth}));
    out_proj_ = register_module("out_proj", nn::Linear(kWidth, kWidth));
    nn::init::xavier_uniform_(in_proj_weight_);
    nn::init::zeros_(out_proj_->bias);
  }

  torch::Tensor forward(torch::Tensor x) {
    const int64_t samples = x.size(0), tokens = x.size(1);
    torch::Tensor projected = torch::linear(x, in_proj_weight_, in_proj_bias_)
                                  .view({samples, tokens, 3, kHeads, kWidth / kHeads})
                                  .permute({2, 0, 3, 1, 4});
    torch::Tensor y = at::scaled_dot_product_attention(projected[0], projected[1], projected[2]);
    return out_proj_(y.transpose(1, 2).reshape({samples, tokens, kWidth}));
  }

 private:
  torch::Tensor in_proj_weight_, in_proj_bias_;
  nn::Linear out_proj_{nullptr};
};
TORCH_MODULE(SelfAttention);

class EncoderBlockImpl : public nn::Module {
 public:
  EncoderBlockImpl() {
    ln_1_ = register_module("ln_1", MakeLayerNorm());
    self_attention_ = register_module("self_attention", SelfAttention());
    ln_2_ = register_module("ln_2", MakeLayerNorm());
    // torchvision's MLPBlock has its activation at 1 and dropouts of 0 at 2 and 4.
    mlp_ = register_module("mlp", nn::Sequential(nn::Linear(kWidth, kMlpWidth), nn::GELU(),
                                                 nn::Identity(), nn::Linear(kMlpWidth, kWidth)));
    for (const auto& module : mlp_->modules(/*include_self=*/false)) {
      if (auto* linear = module->as<nn::LinearImpl>()) {
        nn::init::xavier_uniform_(linear->weight);
        nn::init::normal_(linear->bias, 0, 1e-6);
      }
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x + self_attention_(ln_1_(x));
    return x + mlp_->forward(ln_2_(x));
  }

 private:
  nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  SelfAttention self_attention_{nullptr};
  nn::Sequential mlp_{nullptr};
};
TORCH_MODULE(EncoderBlock);

class EncoderImpl : public nn::Module {
 public:
  explicit EncoderImpl(int64_t tokens) {
    pos_embedding_ =
        register_parameter("pos_embedding", torch::empty({1, tokens, kWidth}).normal_(0, 0.02));
    layers_ = register_module("layers", nn::Sequential());
    for (int64_t i = 0; i < kLayers; ++i) {
      layers_->push_back("encoder_layer_" + std::to_string(i), EncoderBlock());
    }
    ln_ = register_module("ln", MakeLayerNorm());
  }

  torch::Tensor forward(torch::Tensor x) { return ln_(layers_->forward(x + pos_embedding_)); }

 private:
  torch::Tensor pos_embedding_;
  nn::Sequential layers_{nullptr};
  nn::LayerNorm ln_{nullptr};
};
TORCH_MODULE(Encoder);

class VisionTransformer : public Model {
 public:
  explicit VisionTransformer(const ModelOptions& options) {
    const int64_t patches = (options.input.height / kPatch) * (options.input.width / kPatch);
    class_token_ = register_parameter("class_token", torch::zeros({1, 1, kWidth}));
    conv_proj_ = register_module(
        "conv_proj",
        nn::Conv2d(nn::Conv2dOptions(options.input.channels, kWidth, kPatch).stride(kPatch)));
    encoder_ = register_module("encoder", Encoder(patches + 1));
    head_ = nn::Linear(kWidth, options.classes);
    nn::Sequential heads = register_module("heads", nn::Sequential());
    heads->push_back("head", head_);
    InitialiseEnds(options.input.channels * kPatch * kPatch);
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = conv_proj_(images).flatten(2).transpose(1, 2);
    x = torch::cat({class_token_.expand({x.size(0), -1, -1}), x}, 1);
    return head_(encoder_(x).select(1, 0));
  }

 private:
  void InitialiseEnds(int64_t patch_inputs) {
    torch::NoGradGuard no_grad;
    // trunc_normal_ of torchvision cuts at -2 and 2, more than 50 standard deviations away.
    conv_proj_->weight.normal_(0, std::sqrt(1.0 / static_cast<double>(patch_inputs))).clamp_(-2, 2);
    conv_proj_->bias.zero_();
    head_->weight.zero_();
    head_->bias.zero_();
  }

  torch::Tensor class_token_;
  nn::Conv2d conv_proj_{nullptr};
  Encoder encoder_{nullptr};
  nn::Linear head_{nullptr};
};

}  // namespace

std::shared_ptr<Model> MakeVitB16(const ModelOptions& options) {
  return std::make_shared<VisionTransformer>(options);
}

}  // namespace hetero::train
