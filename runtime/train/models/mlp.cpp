#include "runtime/train/models/mlp.h"

namespace hetero::train {
namespace {

constexpr int64_t kFirstHidden = 256;
constexpr int64_t kSecondHidden = 128;

class Mlp : public Model {
 public:
  explicit Mlp(const ModelOptions& options) {
    const api::ImageShape& in = options.input;
    const int64_t inputs = int64_t{in.height} * in.width * in.channels;
    first_ = register_module("1", torch::nn::Linear(inputs, kFirstHidden));
    second_ = register_module("3", torch::nn::Linear(kFirstHidden, kSecondHidden));
    third_ = register_module("5", torch::nn::Linear(kSecondHidden, options.classes));
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::relu(first_(images.flatten(1)));
    x = torch::relu(second_(x));
    return third_(x);
  }

 private:
  torch::nn::Linear first_{nullptr}, second_{nullptr}, third_{nullptr};
};

}  // namespace

std::shared_ptr<Model> MakeMlp(const ModelOptions& options) {
  return std::make_shared<Mlp>(options);
}

}  // namespace hetero::train
