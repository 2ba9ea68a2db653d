// A small model whose steps take as long as its name says, by sleeping: jobs of the tests of
// findings are as fast on a busy machine as on an idle one.
//   paced_20      a forward pass of 20 ms
//   hiccup_20     every 15th of them 25 times as long
//   heavy_20      its state has 128 MB, to be copied for a checkpoint
//   uneven_20     of the replicas of the trainers' role all but the first take four times as long
#include <chrono>
#include <cstdlib>
#include <thread>

#include "hetero/model_plugin.h"

namespace {

namespace nn = torch::nn;

constexpr int64_t kHiccupEvery = 15;
constexpr int64_t kHiccupTimes = 25;
constexpr int64_t kUnevenTimes = 4;
constexpr int64_t kBallast = int64_t{32} << 20;  // float32

class PacedNet : public hetero::train::Model {
 public:
  PacedNet(std::string kind, int64_t milliseconds, int64_t inputs, int64_t classes)
      : kind_(std::move(kind)),
        milliseconds_(milliseconds),
        head_(register_module("head", nn::Linear(inputs, classes))) {
    if (kind_ == "heavy")
      register_parameter("ballast", torch::zeros({kBallast}), /*requires_grad=*/false);
  }

  torch::Tensor forward(torch::Tensor images) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_ * Times()));
    return head_(images.flatten(1));
  }

 private:
  int64_t Times() {
    ++passes_;
    if (kind_ == "hiccup") return passes_ % kHiccupEvery == 0 ? kHiccupTimes : 1;
    const char* index = std::getenv("HETERO_INDEX");
    const bool first = index == nullptr || std::string(index) == "0";
    return kind_ == "uneven" && !first ? kUnevenTimes : 1;
  }

  const std::string kind_;
  const int64_t milliseconds_;
  int64_t passes_ = 0;
  nn::Linear head_;
};

std::shared_ptr<hetero::train::Model> Make(const hetero::train::PluginRequest& request) {
  const size_t line = request.name.find('_');
  return std::make_shared<PacedNet>(
      request.name.substr(0, line), std::stoll(request.name.substr(line + 1)),
      int64_t{request.height} * request.width * request.channels, request.classes);
}

}  // namespace

HETERO_MODEL_PLUGIN({"paced_1", "paced_10", "paced_20", "paced_40", "hiccup_20", "heavy_10",
                     "uneven_20"},
                    Make)
