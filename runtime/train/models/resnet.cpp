#include "runtime/train/models/resnet.h"

#include <array>
#include <memory>

namespace hetero::train {
namespace {

namespace nn = torch::nn;

nn::Conv2d Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// What follows a block's convolutions: null where input and output have one shape.
nn::Sequential MakeDownsample(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  return nn::Sequential(Convolution(in, out, 1, stride), nn::BatchNorm2d(out));
}

class BasicBlockImpl : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 1;

  BasicBlockImpl(int64_t in, int64_t planes, int64_t stride) {
    conv1_ = register_module("conv1", Convolution(in, planes, 3, stride));
    bn1_ = register_module("bn1", nn::BatchNorm2d(planes));
    conv2_ = register_module("conv2", Convolution(planes, planes, 3, 1));
    bn2_ = register_module("bn2", nn::BatchNorm2d(planes));
    downsample_ = MakeDownsample(in, planes, stride);
    if (downsample_) register_module("downsample", downsample_);
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y));
    y += downsample_ ? downsample_->forward(x) : x;
    return y.relu_();
  }

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr};
  nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(BasicBlock);

class BottleneckImpl : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 4;

  BottleneckImpl(int64_t in, int64_t planes, int64_t stride) {
    const int64_t out = planes * kExpansion;
    conv1_ = register_module("conv1", Convolution(in, planes, 1, 1));
    bn1_ = register_module("bn1", nn::BatchNorm2d(planes));
    conv2_ = register_module("conv2", Convolution(planes, planes, 3, stride));
    bn2_ = register_module("bn2", nn::BatchNorm2d(planes));
    conv3_ = register_module("conv3", Convolution(planes, out, 1, 1));
    bn3_ = register_module("bn3", nn::BatchNorm2d(out));
    downsample_ = MakeDownsample(in, out, stride);
    if (downsample_) register_module("downsample", downsample_);
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y)).relu_();
    y = bn3_(conv3_(y));
    y += downsample_ ? downsample_->forward(x) : x;
    return y.relu_();
  }

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr}, bn3_{nullptr};
  nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(Bottleneck);

template <typename Block>
nn::Sequential MakeLayer(int64_t in, int64_t planes, int64_t blocks, int64_t stride) {
  nn::Sequential layer;
  for (int64_t i = 0; i < blocks; ++i) {
    layer->push_back(Block(in, planes, i == 0 ? stride : 1));
    in = planes * Block::Impl::kExpansion;
  }
  return layer;
}

template <typename Block>
class ResNet : public Model {
 public:
  ResNet(const ModelOptions& options, const std::array<int64_t, 4>& blocks) {
    conv1_ = register_module(
        "conv1",
        nn::Conv2d(
            nn::Conv2dOptions(options.input.channels, 64, 7).stride(2).padding(3).bias(false)));
    bn1_ = register_module("bn1", nn::BatchNorm2d(64));
    constexpr int64_t kExpansion = Block::Impl::kExpansion;
    layer1_ = register_module("layer1", MakeLayer<Block>(64, 64, blocks[0], 1));
    layer2_ = register_module("layer2", MakeLayer<Block>(64 * kExpansion, 128, blocks[1], 2));
    layer3_ = register_module("layer3", MakeLayer<Block>(128 * kExpansion, 256, blocks[2], 2));
    layer4_ = register_module("layer4", MakeLayer<Block>(256 * kExpansion, 512, blocks[3], 2));
    fc_ = register_module("fc", nn::Linear(512 * kExpansion, options.classes));
    for (const std::shared_ptr<nn::Module>& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<nn::Conv2dImpl>()) {
        nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = bn1_(conv1_(images)).relu_();
    x = torch::max_pool2d(x, 3, 2, 1);
    x = layer1_->forward(x);
    x = layer2_->forward(x);
    x = layer3_->forward(x);
    x = layer4_->forward(x);
    return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  bool has_batch_norm() const override { return true; }
  bool channels_last() const override { return true; }

 private:
  nn::Conv2d conv1_{nullptr};
  nn::BatchNorm2d bn1_{nullptr};
  nn::Sequential layer1_{nullptr}, layer2_{nullptr}, layer3_{nullptr}, layer4_{nullptr};
  nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<Model> MakeResNet18(const ModelOptions& options) {
  return std::make_shared<ResNet<BasicBlock>>(options, std::array<int64_t, 4>{2, 2, 2, 2});
}

std::shared_ptr<Model> MakeResNet50(const ModelOptions& options) {
  return std::make_shared<ResNet<Bottleneck>>(options, std::array<int64_t, 4>{3, 4, 6, 3});
}

}  // namespace hetero::train
