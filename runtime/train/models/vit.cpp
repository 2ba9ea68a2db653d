#include "runtime/train/models/vit.h"

#include <cmath>

namespace hetero::train {
namespace {

namespace nn = torch::nn;

nn::LayerNorm MakeLayerNorm(int64_t width) {
  return nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-6));
}

// The parameters of torch.nn.MultiheadAttention: one input projection for query, key and value.
class SelfAttentionImpl : public nn::Module {
 public:
  explicit SelfAttentionImpl(const VitShape& shape) : heads_(shape.heads) {
    const int64_t width = shape.width;
    in_proj_weight_ = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
    in_proj_bias_ = register_parameter("in_proj_bias", torch::zeros({3 * width}));
    out_proj_ = register_module("out_proj", nn::Linear(width, width));
    nn::init::xavier_uniform_(in_proj_weight_);
    nn::init::zeros_(out_proj_->bias);
  }

  torch::Tensor forward(torch::Tensor x) {
    const int64_t samples = x.size(0), tokens = x.size(1), width = x.size(2);
    torch::Tensor projected = torch::linear(x, in_proj_weight_, in_proj_bias_)
                                  .view({samples, tokens, 3, heads_, width / heads_})
                                  .permute({2, 0, 3, 1, 4});
    torch::Tensor y = at::scaled_dot_product_attention(projected[0], projected[1], projected[2]);
    return out_proj_(y.transpose(1, 2).reshape({samples, tokens, width}));
  }

 private:
  int64_t heads_;
  torch::Tensor in_proj_weight_, in_proj_bias_;
  nn::Linear out_proj_{nullptr};
};
TORCH_MODULE(SelfAttention);

class EncoderBlockImpl : public nn::Module {
 public:
  explicit EncoderBlockImpl(const VitShape& shape) {
    ln_1_ = register_module("ln_1", MakeLayerNorm(shape.width));
    self_attention_ = register_module("self_attention", SelfAttention(shape));
    ln_2_ = register_module("ln_2", MakeLayerNorm(shape.width));
    // torchvision's MLPBlock has its activation at 1 and dropouts of 0 at 2 and 4.
    mlp_ = register_module(
        "mlp", nn::Sequential(nn::Linear(shape.width, shape.mlp_width), nn::GELU(), nn::Identity(),
                              nn::Linear(shape.mlp_width, shape.width)));
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
  EncoderImpl(const VitShape& shape, int64_t tokens) {
    pos_embedding_ = register_parameter("pos_embedding",
                                        torch::empty({1, tokens, shape.width}).normal_(0, 0.02));
    nn::Sequential layers = register_module("layers", nn::Sequential());
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks_.emplace_back(shape);
      layers->push_back("encoder_layer_" + std::to_string(i), blocks_.back());
    }
    ln_ = register_module("ln", MakeLayerNorm(shape.width));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = AddPositions(x);
    for (EncoderBlock& block : blocks_) x = block(x);
    return ln_(x);
  }
  torch::Tensor AddPositions(const torch::Tensor& x) { return x + pos_embedding_; }

  const torch::Tensor& pos_embedding() const { return pos_embedding_; }
  const std::vector<EncoderBlock>& blocks() const { return blocks_; }
  nn::LayerNorm ln() const { return ln_; }

 private:
  torch::Tensor pos_embedding_;
  std::vector<EncoderBlock> blocks_;
  nn::LayerNorm ln_{nullptr};
};
TORCH_MODULE(Encoder);

class VisionTransformer : public Model {
 public:
  VisionTransformer(const ModelOptions& options, const VitShape& shape) {
    const int64_t side = shape.patch;
    const int64_t patches = (options.input.height / side) * (options.input.width / side);
    class_token_ = register_parameter("class_token", torch::zeros({1, 1, shape.width}));
    conv_proj_ = register_module(
        "conv_proj",
        nn::Conv2d(nn::Conv2dOptions(options.input.channels, shape.width, side).stride(side)));
    encoder_ = register_module("encoder", Encoder(shape, patches + 1));
    head_ = nn::Linear(shape.width, options.classes);
    nn::Sequential heads = register_module("heads", nn::Sequential());
    heads->push_back("head", head_);
    InitialiseEnds(options.input.channels * side * side);
  }

  torch::Tensor forward(torch::Tensor images) override {
    return head_(encoder_(Tokens(images)).select(1, 0));
  }

  std::vector<ModelStage> stages() override {
    std::vector<ModelStage> stages;
    std::vector<torch::Tensor> first = conv_proj_->parameters();
    first.insert(first.end(), {class_token_, encoder_->pos_embedding()});
    stages.push_back(
        {[this](torch::Tensor x) { return encoder_->AddPositions(Tokens(x)); }, first});
    for (EncoderBlock block : encoder_->blocks()) {
      stages.push_back(
          {[block](torch::Tensor x) mutable { return block(x); }, block->parameters()});
    }
    std::vector<torch::Tensor> last = encoder_->ln()->parameters();
    for (const torch::Tensor& parameter : head_->parameters()) last.push_back(parameter);
    stages.push_back(
        {[this](torch::Tensor x) { return head_(encoder_->ln()->forward(x).select(1, 0)); }, last});
    return stages;
  }

 private:
  torch::Tensor Tokens(const torch::Tensor& images) {
    const torch::Tensor x = conv_proj_(images).flatten(2).transpose(1, 2);
    return torch::cat({class_token_.expand({x.size(0), -1, -1}), x}, 1);
  }
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

std::shared_ptr<Model> MakeVisionTransformer(const ModelOptions& options, const VitShape& shape) {
  return std::make_shared<VisionTransformer>(options, shape);
}

std::shared_ptr<Model> MakeVitB16(const ModelOptions& options) {
  return MakeVisionTransformer(options, {});
}

}  // namespace hetero::train
