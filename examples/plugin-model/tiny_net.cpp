// A model of one's own as a shared library. A job names it so:
//
//   training:
//     model: {plugin: /models/libtiny_net.so, name: tiny_net}
#include <hetero/model_plugin.h>

namespace {

namespace nn = torch::nn;

// Two convolutions, an average over the picture, one linear layer.
class TinyNet : public hetero::train::Model {
 public:
  TinyNet(int64_t channels, int64_t classes) {
    first_ = register_module("first", nn::Conv2d(nn::Conv2dOptions(channels, 16, 3).padding(1)));
    norm_ = register_module("norm", nn::BatchNorm2d(16));
    second_ = register_module("second", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).stride(2)));
    head_ = register_module("head", nn::Linear(32, classes));
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::relu(norm_(first_(images)));
    x = torch::relu(second_(x));
    return head_(x.mean({2, 3}));
  }

  bool has_batch_norm() const override { return true; }
  bool channels_last() const override { return true; }

 private:
  nn::Conv2d first_{nullptr}, second_{nullptr};
  nn::BatchNorm2d norm_{nullptr};
  nn::Linear head_{nullptr};
};

std::shared_ptr<hetero::train::Model> Make(const hetero::train::PluginRequest& request) {
  return std::make_shared<TinyNet>(request.channels, request.classes);
}

}  // namespace

HETERO_MODEL_PLUGIN({"tiny_net"}, Make)
